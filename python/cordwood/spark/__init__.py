"""Spark integration: a data source and a sink for Kafka partition directories, UDFs, and jobs.

    from cordwood.spark import register
    register(spark)
    spark.read.format("cordwood").option("subscribe", "orders").load("/data")

Each thread that reads or writes logs calls `register(spark)`, as the first one did: Spark looks for sinks in Python in
the active session of the thread, and fails with `DATA_SOURCE_NOT_FOUND` in a thread that has none.

It needs the extra `spark` (pyspark 4.2 or newer, pyarrow; pandas for the pandas UDFs) and a Java version that Spark
supports. The data source in Java, whose file `jar()` names, needs Spark 4.0 or newer.

The options are those of Spark's Kafka source and sink, and cordwood's own. Names are case-insensitive; an unknown one
is an error that suggests the nearest. The sources in Python and in Java have the same.

Reading: `spark.read` and `spark.readStream`

| option | type | default | meaning |
|---|---|---|---|
| `path` | path | | a data directory, a partition directory, or a glob of them: `.load(path)` |
| `paths` | JSON list of paths | | several: `.load([path, path])` |
| `subscribe` | names, with commas | all topics | these topics |
| `subscribePattern` | regular expression | all topics | topics whose name contains a match |
| `assign` | JSON `{"orders":[0,1]}` | all partitions | these partitions |
| `excludeInternalTopics` | true, false | true with `subscribePattern` | whether internal topics are left out |
| `kafka.exclude.internal.topics` | | | the same |
| `startingOffsets` | earliest, latest, JSON `{"orders":{"0":23}}` | earliest; of a stream latest | \
the first offset; in JSON -2 is the earliest and -1, of a stream, the latest |
| `startingTimestamp` | time | | starts at the first record at or after this time |
| `startingOffsetsByTimestamp` | JSON `{"orders":{"0":"2024-05-01T10:00Z"}}` | | the same for each partition |
| `startingOffsetsByTimestampStrategy` | error, latest | error | if no record is at or after the time |
| `endingOffsets` | latest, JSON `{"orders":{"0":42}}` | latest | the end, exclusive, at or after the start; no stream |
| `endingTimestamp` | time | | ends before the first record at or after this time; not of a stream |
| `endingOffsetsByTimestamp` | JSON, as for the start | | the same for each partition; not of a stream |
| `failOnDataLoss` | true, false | true | whether lost data is an error; otherwise it is a warning |
| `minPartitions` | number | | the minimum number of tasks |
| `maxRecordsPerPartition` | number | | the maximum number of offsets of a task |
| `maxPartitionBytes` | bytes | 128 MiB, or less | the size of a task; by default each core has one |
| `maxOffsetsPerTrigger` | number | | of a stream: the maximum number of offsets of a micro-batch |
| `minOffsetsPerTrigger` | number | | of a stream: the minimum number of offsets of a micro-batch |
| `maxTriggerDelay` | duration | 15m | of a stream: how long a micro-batch waits for the minimum |
| `table` | records, batches, segments | records | of what the rows are; of a stream only records |
| `columns` | names, with commas | those of Spark's Kafka source | the columns of records |
| `includeHeaders` | true, false | false | whether the column `headers` is added |
| `isolationLevel` | read_uncommitted, read_committed | read_uncommitted | which records of transactions are returned |
| `kafka.isolation.level` | | | the same |
| `cleanupPolicy` | delete, compact | what the files show | whether compaction may have left gaps between segments |
| `mode` | FAILFAST, DROPMALFORMED, PERMISSIVE | FAILFAST | damage is an error, left out, or a row with `_error` |
| `maxBatchRows` | number | 20000 | the maximum number of rows of an Arrow batch |
| `maxBatchBytes` | bytes | 8388608 | the approximate maximum size of an Arrow batch |
| `maxLogBatchBytes` | bytes | 134217728 | the maximum size of a batch in the log, as stored and decompressed |
| `checkCrc` | true, false | true | whether the checksums of batches are verified |
| `kafka.check.crcs` | | | the same |
| `io` | auto, mmap, pread | pread | which files are mapped |

A time is a number of milliseconds since the epoch, or a text: `2024-05-01T10:00Z`, `2024-05-01T12:00+02:00`,
`2024-05-01` (midnight UTC), `-2h`, `now`, `1714557600s`. `cordwood.times.FORMS` has all forms.

Other options of Spark's Kafka source (`kafka.bootstrap.servers` and all others with that prefix, `groupIdPrefix`,
`kafkaConsumer.pollTimeoutMs`, `fetchOffset.numRetries`, `fetchOffset.retryIntervalMs`) are ignored with a warning. So
are the options of streams in a batch query, as in Spark's Kafka source.

Writing: `df.write` and `df.writeStream`; with the source in Java, the format is `cordwood_sink`

| option | type | default | meaning |
|---|---|---|---|
| `path` | path | | a data directory, or a partition directory if the rows have no topic: `.save(path)` |
| `topic` | name | the column `topic` | the topic of all rows |
| `numPartitions` | number | those that are there; 1 for a new topic | the number of partitions of a new topic |
| `txnAppId` | name | | of a batch: with `txnVersion`, a version up to the last one of this id is not written |
| `txnVersion` | number | | see `txnAppId` |
| `kafka.*` | settings of a topic | the topic's in `__cluster_metadata-0`, then Kafka's | \
`kafka.compression.type`, `kafka.segment.bytes` and the others of `LogConfig.to_properties()`; those of a producer are \
ignored |
| `includeHeaders` | | | ignored: headers are written if there is a column `headers` |
| `checkpointLocation` | path | | Spark's own, of a stream |

The save modes are `append` and `overwrite`, the output modes of a stream `append` and `complete`. Spark refuses the
output mode `update`: `start()` returns, and `awaitTermination()` raises a `StreamingQueryException` ("does not support
Update mode"). Nothing is written.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import cordwood.spark.jobs as jobs  # noqa: PLR0402
    from cordwood.spark.decoding import decode_batches
    from cordwood.spark.jar_file import jar
    from cordwood.spark.java_source import register
    from cordwood.spark.source import LogDataSource
    from cordwood.spark.udf import locate, offset_for_time
    from cordwood.spark.write.undo import undo_write, unfinished_writes

__all__ = [
    "LogDataSource",
    "decode_batches",
    "jar",
    "jobs",
    "locate",
    "offset_for_time",
    "register",
    "undo_write",
    "unfinished_writes",
]

# planning, options and errors work without Spark, so the modules that need it are imported on first use
_WHERE = {
    "LogDataSource": "source",
    "decode_batches": "decoding",
    "jar": "jar_file",
    "jobs": "jobs",
    "locate": "udf",
    "offset_for_time": "udf",
    "register": "java_source",
    "undo_write": "write.undo",
    "unfinished_writes": "write.undo",
}


def __dir__() -> list[str]:
    """List the public names, also those that are not imported yet."""
    return [*globals(), *__all__]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Import a name on first use. The error for a missing dependency says how to install it."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"cordwood.spark.{_WHERE[name]}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pyspark", "pyarrow", "pandas"):
            raise
        raise ImportError(
            f"cordwood.spark needs {error.name}: pip install 'cordwood[spark]'", name=error.name
        ) from error
    return module if name == _WHERE[name] else getattr(module, name)
