"""The data source as Spark sees it."""

from functools import cached_property
from typing import NoReturn

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from cordwood.spark.batch import LogReader
from cordwood.spark.bounds import check_names, check_start
from cordwood.spark.errors import UNSUPPORTED, SparkLogError
from cordwood.spark.options import SparkLogOptions
from cordwood.spark.partitions import find_partitions
from cordwood.spark.schema import table_schema
from cordwood.spark.stream import LogStreamReader

__all__ = ["LogDataSource", "register"]


class LogDataSource(DataSource):
    """`format("cordwood")`: partition directories of Kafka as rows. The options are those of `SparkLogOptions`."""

    @classmethod
    def name(cls) -> str:
        """Give the format's name."""
        return "cordwood"

    @cached_property
    def log_options(self) -> SparkLogOptions:
        """The options, checked with the paths. Spark makes a source for a write, too, whose options are others."""
        options = SparkLogOptions.from_options(self.options)
        # the plan of the query warns of what is left out
        chosen = find_partitions(options, warn=lambda _: None)
        # a stream that goes on may meet partitions that came after its first offsets were written down
        check_names(options, chosen, is_whole=options.has_end)
        if options.has_end:
            check_start(options)
        return options

    def schema(self) -> StructType:
        """Give the columns that the options ask for. What is wrong with the options fails `.load()` here."""
        return table_schema(self.log_options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Make the reader of a query."""
        return LogReader(self.log_options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  (Spark's name)
        """Make the reader of a stream."""
        return LogStreamReader(self.log_options, schema)

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


def register(spark: SparkSession) -> None:
    """Make `format("cordwood")` known to a session."""
    spark.dataSource.register(LogDataSource)
