"""The data source in Python."""

from functools import cached_property
from typing import NoReturn

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from cordwood._core import _SourceOptions
from cordwood.spark.batch import LogReader
from cordwood.spark.errors import UNSUPPORTED, SparkLogError
from cordwood.spark.schema import query_of, schema_of
from cordwood.spark.stream import LogStreamReader

__all__ = ["LogDataSource"]


class LogDataSource(DataSource):
    """`format("cordwood")`: Kafka partition directories as rows. The options are in the README."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "cordwood"

    @cached_property
    def log_options(self) -> _SourceOptions:
        """The options, checked together with the paths.

        It is lazy because Spark also creates a source for a write, which has other options.
        """
        options = _SourceOptions(dict(self.options))
        options.check()
        return options

    def schema(self) -> StructType:
        """Return the columns that the options select. Invalid options fail `.load()` here."""
        return schema_of(query_of(self.log_options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        return LogReader(query_of(self.log_options, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  (Spark's name)
        """Return the reader of a stream."""
        return LogStreamReader(query_of(self.log_options, schema, is_stream=True))

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: ARG002  (Spark's names)
        """Refuse to write."""
        raise SparkLogError(UNSUPPORTED, _READS_ONLY)

    def streamWriter(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: ARG002, N802
        """Refuse to write."""
        raise SparkLogError(UNSUPPORTED, _READS_ONLY)


_READS_ONLY = (
    f'format("{LogDataSource.name()}") is for reading: to append to a log use cordwood.LogWriter, whose append_arrow '
    "takes a table; to keep rows write them in another format, such as parquet"
)
