"""The data source in Python."""

from functools import cached_property

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from cordwood._core import _SourceOptions
from cordwood.spark.batch import LogReader
from cordwood.spark.schema import query_of, schema_of
from cordwood.spark.stream import LogStreamReader
from cordwood.spark.write.writers import LogBatchWriter, LogStreamWriter

__all__ = ["LogDataSource", "SinkDataSource"]


class LogDataSource(DataSource):
    """`format("cordwood")`: Kafka partition directories as rows. The options are in `help(cordwood.spark)`."""

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

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch."""
        return LogBatchWriter(self.options, schema, is_overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Return the writer of a stream."""
        return LogStreamWriter(self.options, schema, is_overwrite=overwrite)


class SinkDataSource(LogDataSource):
    """The same under another name: in a session where `cordwood` is the source in Java, which does not write."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "cordwood_sink"
