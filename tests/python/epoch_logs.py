"""Logs whose leader epochs fall, as after a restored backup under another cluster."""

from __future__ import annotations

from pathlib import Path

from batches import Rec, batch

# the epochs of the batches of each segment
FALLS = {
    "within a segment": [[5, 5, 5, 2, 2, 2]],
    "at a new segment": [[5, 5, 5], [2, 2, 2]],
    "before the last batch of a segment": [[5, 5, 5, 2], [2, 2]],
    "after the first batch of a segment": [[5, 5], [5, 2, 2]],
    "to the last batch": [[5, 5, 5, 2]],
    "to the only batch of the last segment": [[5, 5, 5], [2]],
    "after a segment of one batch": [[5, 5, 5], [5], [2, 2]],
    "by one": [[5, 5, 5, 4, 4], [4, 4]],
    "and rise again": [[5, 5, 2, 2, 3], [3, 4, 9]],
    "twice": [[7, 7, 4, 4], [4, 1, 1]],
    "by one at the last batch": [[5, 5, 5, 4]],
    "after the first batch": [[7, 5, 5, 5]],
    "by one at the last batch of a segment": [[1, 1, 0], [0, 0]],
    "by one after the first batch of a segment": [[1, 1, 1], [1, 0, 0, 0]],
    "by a bit at the last batch of a segment": [[3, 3, 2], [2, 2, 2]],
    "before segments of one batch": [[0, 0], [2, 2, 0], [0], [0]],
    "in segments of one batch": [[2, 2], [2], [0], [0], [0]],
    "after segments of one batch, and rise": [[6], [6], [2, 2], [3, 3]],
}


def write(partition: Path, segments: list[list[int]]) -> list[bytes]:
    """Write a batch of one record for each epoch; return the values."""
    partition.mkdir(parents=True)
    offset = 0
    for epochs in segments:
        raw = b"".join(
            batch(offset + n, [Rec(b"%d" % (offset + n))], leader_epoch=epoch) for n, epoch in enumerate(epochs)
        )
        (partition / f"{offset:020}.log").write_bytes(raw)
        offset += len(epochs)
    return [b"%d" % n for n in range(offset)]
