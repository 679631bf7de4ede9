"""The writers that Spark calls: `df.write` and `df.writeStream`."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from cordwood import CordwoodError
from cordwood.spark.errors import INTERNAL, UNSUPPORTED, SparkLogError, bad_option
from cordwood.spark.workers import freeze_modules
from cordwood.spark.write.commit import check_lock, commit_staged, recover
from cordwood.spark.write.journal import Journal
from cordwood.spark.write.options import SinkOptions
from cordwood.spark.write.partitions import partitions_of_topics
from cordwood.spark.write.rows import RowLayout, check_columns
from cordwood.spark.write.staging import Staged, StagingLog

__all__ = ["LogBatchWriter", "LogStreamWriter"]

# set by Spark in the tasks of a micro-batch
_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"


@dataclass
class StagedMessage(WriterCommitMessage):
    """What a task tells the driver."""

    staged: list[Staged]
    query: str | None
    """The id of the streaming query; `None` for a batch write."""


class LogBatchWriter(DataSourceArrowWriter):
    """A batch write. Spark creates it in the driver and pickles it for the tasks and for `commit` or `abort`."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, is_overwrite: bool) -> None:
        """Check the options and the columns, and end the writes that were interrupted."""
        self._layout = _layout(options, schema)
        self._is_overwrite = is_overwrite
        self._write = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedMessage:
        """Stage the rows of a task, in a worker."""
        return StagedMessage(_stage(self._layout, iterator, self._write), None)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Append the staged rows, in the order of the tasks."""
        options = self._layout.options
        with _errors():
            commit_staged(
                options, self._write, _staged(messages), is_overwrite=self._is_overwrite, query=options.transaction
            )
        _remove_staged(options, self._write)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Remove what was staged. Tasks may still be running; what they leave is removed later."""
        _remove_staged(self._layout.options, self._write)


class LogStreamWriter(DataSourceStreamArrowWriter):
    """The micro-batches of a stream. Spark creates it again for each `commit` and `abort`."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, is_overwrite: bool) -> None:
        """Check the options and the columns, and end the writes that were interrupted."""
        self._layout = _layout(options, schema)
        self._is_overwrite = is_overwrite
        if self._layout.options.transaction is not None:
            raise bad_option("txnAppId", "no such option of a stream, which numbers its micro-batches", "one")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedMessage:
        """Stage the rows of a task, in a worker."""
        context = _context()
        query, batch = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
        if not query:
            expected = f"a task of a stream with the property {_QUERY}, as Spark's micro-batches have"
            raise SparkLogError(UNSUPPORTED, f"expected {expected}, found none")
        return StagedMessage(_stage(self._layout, iterator, f"{query}-{batch}"), query)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  (Spark's name)
        """Append the staged rows, unless this micro-batch was committed before."""
        query = _query(messages)
        # a micro-batch without a task has no row
        if query is not None:
            with _errors():
                commit_staged(
                    self._layout.options,
                    f"{query}-{batchId}",
                    _staged(messages),
                    is_overwrite=self._is_overwrite,
                    query=(query, batchId),
                )
            # also what earlier runs of the query have left
            _remove_staged(self._layout.options, query)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Remove what was staged. Tasks may still be running; what they leave is removed by the next commit."""
        query = _query(messages)
        if query is not None:
            _remove_staged(self._layout.options, f"{query}-{batchId}")


def _layout(options: Mapping[str, str], schema: StructType) -> RowLayout:
    check_columns(schema)
    checked = SinkOptions.of(options, has_topics="topic" in schema.fieldNames())
    with _errors():
        check_lock(checked.root)
        # topics of rows are known when they are committed
        recover(checked.root, [] if checked.topic is None else [checked.topic], checked.configs())
        layout = RowLayout(checked, partitions_of_topics(checked.root, checked.topic))
    if checked.topic is not None:
        partitions = layout.partitions_of(checked.topic)
        partitions.check_count(checked.partitions)
        if checked.partition is not None:
            partitions.check_path(checked.partition)
    return layout


def _stage(layout: RowLayout, batches: Iterator[pa.RecordBatch], write: str) -> list[Staged]:
    freeze_modules()
    task = _context().partitionId()
    log = StagingLog(layout.options.configs(), layout.options.root, write, task)
    try:
        with _errors():
            for batch in batches:
                for topic, partition, rows in layout.split(batch, task):
                    log.append(topic, partition, rows)
            return log.finish()
    except BaseException:
        log.discard()
        raise


def _remove_staged(options: SinkOptions, writes: str) -> None:
    """Remove the staged logs of a write that has ended. It counts, or does not, also if that fails."""
    # a later write removes the rest
    with suppress(SparkLogError, OSError):
        Journal(options.root).remove_staged(writes)


def _context() -> Any:  # noqa: ANN401  (Spark's stubs say that there may be none)
    return TaskContext.get()


def _staged(messages: Sequence[WriterCommitMessage | None]) -> list[Staged]:
    staged = []
    for message in messages:
        # in a commit every task has one
        if not isinstance(message, StagedMessage):
            raise SparkLogError(INTERNAL, f"expected a message of each task, found {message!r}")
        staged += message.staged
    return staged


def _query(messages: Sequence[WriterCommitMessage | None]) -> str | None:
    return next((message.query for message in messages if isinstance(message, StagedMessage)), None)


@contextmanager
def _errors() -> Iterator[None]:
    """Give errors of the core a code."""
    try:
        yield
    except SparkLogError:
        raise
    except (CordwoodError, OSError) as error:
        raise SparkLogError.of(error) from error
