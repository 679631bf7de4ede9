"""The data source as Spark sees it."""

from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from cordwood.spark.batch import LogReader
from cordwood.spark.bounds import check_names, check_start
from cordwood.spark.options import SparkLogOptions
from cordwood.spark.partitions import find_partitions
from cordwood.spark.schema import table_schema
from cordwood.spark.stream import LogStreamReader

__all__ = ["LogDataSource", "register"]


class LogDataSource(DataSource):
    """`format("cordwood")`: partition directories of Kafka as rows. The options are those of `SparkLogOptions`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Check options and paths, so that `.load()` fails and not a query later on."""
        super().__init__(dict(options))
        self.log_options = SparkLogOptions.from_options(options)
        self._schema = table_schema(self.log_options)
        chosen = find_partitions(self.log_options)
        # a stream that goes on may meet partitions that came after its first offsets were written down
        check_names(self.log_options, chosen, is_whole=self.log_options.has_end)
        if self.log_options.has_end:
            check_start(self.log_options)

    @classmethod
    def name(cls) -> str:
        """Give the format's name."""
        return "cordwood"

    def schema(self) -> StructType:
        """Give the columns that the options ask for."""
        return self._schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Make the reader of a query."""
        return LogReader(self.log_options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  (Spark's name)
        """Make the reader of a stream."""
        return LogStreamReader(self.log_options, schema)


def register(spark: SparkSession) -> None:
    """Make `format("cordwood")` known to a session."""
    spark.dataSource.register(LogDataSource)
