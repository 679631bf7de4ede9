"""The sink: rows of DataFrames and streams, appended to logs.

A task never changes a log. It writes its rows to a staged log, each batch for one partition, and the driver appends
the batches to the logs of the partitions when all tasks have ended:

    orders-0/                                  the log
      .cordwood.spark/
        staged/<write>/task-3.7f3a…/           the staged log of one attempt of a task
        unfinished/<write>.json                the commit that is going on: where each log ended before it
        finished/<query>.json                  the last micro-batch of a query that was committed

    tasks       rows ──▶ staged logs, durable
    driver      locks of all partitions ──▶ unfinished/….json ──▶ append ──▶ flush ──▶ remove or rename that file

The removal, or the renaming, of the file in `unfinished` is the moment when a write counts. Until then an error takes
the appended records back, and after a crash the next write does, or an undo before it: the logs are truncated to where
they ended, if only records of the write follow, by comparison with the staged logs (`remains`). Attempts of tasks that
did not succeed are in no message, and their staged logs are removed unread. A commit of a micro-batch that is recorded
in `finished` appends nothing.

Everything is inside the partition directories, because a broker does not start with another directory in its data
directory. The file of a write is in the first of its partitions.
"""
