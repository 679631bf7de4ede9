"""The source in Java, called as Spark calls it, with the interface of the source in Python.

The objects are those of Java, by py4j. Spark's own converter makes Arrow batches of their rows. Errors are those that
`errors.parse` finds in the exceptions, and warnings of Java's logger are logged again by Python's.
"""

from __future__ import annotations

import functools
import itertools
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from cordwood._core import _Task
from cordwood.spark import errors

PACKAGE = "io.cordwood.spark"
LOGGER = "cordwood"


class Jvm:
    """The JVM of the session, and the warnings of its logger."""

    def __init__(self, spark: SparkSession) -> None:
        self.gateway = spark.sparkContext._gateway  # noqa: SLF001  (the only way to it)
        self.packages = self.gateway.jvm
        self.writer = self.packages.java.io.StringWriter()
        log4j = self.packages.org.apache.logging.log4j
        layout = log4j.core.layout.PatternLayout.newBuilder().withPattern("%m%n").build()
        builder = log4j.core.appender.WriterAppender.newBuilder()
        appender = builder.setTarget(self.writer).setLayout(layout).setName("tests").build()
        appender.start()
        log4j.LogManager.getLogger(LOGGER).addAppender(appender)
        log4j.core.config.Configurator.setLevel(LOGGER, log4j.Level.WARN)

    def find_class(self, name: str) -> Any:
        return self.packages.org.apache.spark.util.Utils.classForName(name, True, False)

    def array(self, kind: Any, *values: Any) -> Any:
        found = self.gateway.new_array(kind, len(values))
        for index, value in enumerate(values):
            found[index] = value
        return found

    def new(self, name: str, *arguments: Any) -> Any:
        """An object of a class with one constructor, which need not be public."""
        constructor = self.find_class(f"{PACKAGE}.{name}").getDeclaredConstructors()[0]
        constructor.setAccessible(True)
        return constructor.newInstance(self.array(self.packages.java.lang.Object, *arguments))

    def struct(self, schema: StructType) -> Any:
        return self.packages.org.apache.spark.sql.types.StructType.fromJson(schema.json())

    def call(self, function: Callable[[], Any]) -> Any:
        """Call a function, log its warnings, and convert its error."""
        try:
            return function()
        except Exception as error:
            found = errors.parse(error)
            if found is None:
                raise
            raise found from error
        finally:
            for line in self.writer.toString().splitlines():
                logging.getLogger("cordwood").warning("%s", line)
            self.writer.getBuffer().setLength(0)


@functools.cache
def jvm() -> Jvm:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    return Jvm(spark)


_kept: dict[int, Any] = {}
_numbers = itertools.count()


class Kept:
    """An object of Java, whose pickles refer to the same object in this process."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        number = next(_numbers)
        _kept[number] = self.value
        return (_restored, (number,))


def _restored(number: int) -> Kept:
    return Kept(_kept[number])


class JvmPartition(InputPartition):
    """A task, as bytes."""


class JvmTasks:
    """What reads tasks: the factory of a batch or a stream."""

    def __init__(self, schema: StructType, factory: Any) -> None:
        self.schema = schema
        self.factory = Kept(factory)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        java = jvm()
        converters = getattr(getattr(java.packages.org.apache.spark.sql.execution.arrow, "ArrowConverters$"), "MODULE$")
        struct, arrow = java.struct(self.schema), to_arrow_schema(self.schema, timezone="UTC")
        task = java.new("LogInputPartition", bytes(partition.value))
        reader = java.call(lambda: self.factory.value.createColumnarReader(task))
        try:
            while java.call(reader.next):
                rows = java.packages.scala.jdk.javaapi.CollectionConverters.asScala(reader.get().rowIterator())
                batches = converters.toBatchIterator(rows, struct, 1 << 20, "UTC", True, False, None)
                while batches.hasNext():
                    yield pa.ipc.read_record_batch(pa.py_buffer(bytes(batches.next())), arrow)
        finally:
            java.call(reader.close)


class JvmReader(JvmTasks):
    def __init__(self, schema: StructType, scan: Any) -> None:
        batch = scan.toBatch()
        super().__init__(schema, batch.createReaderFactory())
        self.batch = Kept(batch)

    def partitions(self) -> list[InputPartition]:
        return _tasks(jvm().call(self.batch.value.planInputPartitions))


def _tasks(partitions: Any) -> list[InputPartition]:
    return [JvmPartition(_Task(bytes(one.task()))) for one in partitions]


class JvmStreamReader(JvmTasks, SupportsTriggerAvailableNow):
    def __init__(self, schema: StructType, scan: Any) -> None:
        stream = jvm().call(lambda: scan.toMicroBatchStream("unused"))
        super().__init__(schema, stream.createReaderFactory())
        self.stream = Kept(stream)

    def _offset(self, offset: Mapping[str, Any]) -> Any:
        return self.stream.value.deserializeOffset(json.dumps(offset))

    def _read(self, call: Callable[[], Any]) -> dict[str, Any]:
        return dict(json.loads(jvm().call(call).json()))

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  (Spark's name, as those below)
        return self._read(self.stream.value.initialOffset)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        limit = self.stream.value.getDefaultReadLimit()
        return ReadMaxRows(limit.maxRows()) if "maxRows" in dir(limit) else ReadAllAvailable()

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        limits = jvm().packages.org.apache.spark.sql.connector.read.streaming.ReadLimit
        converted = limits.maxRows(limit.max_rows) if isinstance(limit, ReadMaxRows) else limits.allAvailable()
        return self._read(lambda: self.stream.value.latestOffset(self._offset(start), converted))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        jvm().call(self.stream.value.prepareForTriggerAvailableNow)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        found = jvm().call(self.stream.value.reportLatestOffset)
        return None if found is None else dict(json.loads(found.json()))

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[InputPartition]:
        stream = self.stream.value
        return _tasks(jvm().call(lambda: stream.planInputPartitions(self._offset(start), self._offset(end))))

    def commit(self, end: Mapping[str, Any]) -> None:
        self.stream.value.commit(self._offset(end))


class JvmSource:
    """The source, created with options as Spark's class in Python."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = dict(options)

    @classmethod
    def name(cls) -> str:
        return "cordwood"

    def _options(self) -> Any:
        found = jvm().packages.java.util.HashMap()
        for name, value in self.options.items():
            found.put(name, value)
        return found

    def _insensitive(self) -> Any:
        return jvm().packages.org.apache.spark.sql.util.CaseInsensitiveStringMap(self._options())

    def schema(self) -> StructType:
        source = jvm().new("LogDataSource")
        return StructType.fromJson(json.loads(jvm().call(lambda: source.inferSchema(self._insensitive())).json()))

    def _scan(self, schema: StructType) -> Any:
        java = jvm()
        no_transforms = java.array(java.packages.org.apache.spark.sql.connector.expressions.Transform)
        struct = java.struct(schema)
        table = java.call(lambda: java.new("LogDataSource").getTable(struct, no_transforms, self._options()))
        return java.call(lambda: table.newScanBuilder(self._insensitive()).build())

    def reader(self, schema: StructType) -> JvmReader:
        return JvmReader(schema, self._scan(schema))

    def streamReader(self, schema: StructType) -> JvmStreamReader:  # noqa: N802  (Spark's name)
        return JvmStreamReader(schema, self._scan(schema))
