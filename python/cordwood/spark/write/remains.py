"""What an interrupted commit has left in a log. Does not use Spark."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from cordwood import CordwoodError, Log
from cordwood.spark.write.journal import Change
from cordwood.spark.write.staging import Fingerprint, LogBatches

__all__ = ["Remains", "remains_of"]


@dataclass(frozen=True)
class Remains:
    """The records of a log after the start of a commit: first the records of the commit, then records of others."""

    start_offset: int
    """The log end offset before the commit, or the log start offset, if records of the commit were deleted since."""

    end_offset: int
    """The offset after the last record of the commit (exclusive)."""

    log_end_offset: int
    """The end of the log."""

    error: str | None = None
    """Why the records of the commit cannot be told from records of others: all of them count as records of others."""

    @property
    def has_others(self) -> bool:
        """Whether records of others follow, which a truncation would remove too."""
        return self.error is not None or self.log_end_offset > self.end_offset


def remains_of(root: Path, log: Log, change: Change) -> Remains:
    """Compare a log with the staged logs of a commit, batch by batch, from its start on."""
    start, end = max(change.start_offset, log.log_start_offset), log.log_end_offset
    # a log that was truncated since has nothing of the commit
    if end <= start:
        return Remains(start, start, start)
    try:
        found = LogBatches(log, start).fingerprints(start, end)
        last = start
        for batch, own in zip(found, _staged(root, change, start), strict=False):
            if batch != own:
                break
            last = batch.base_offset + batch.count
        return Remains(start, last, end)
    except (CordwoodError, OSError) as error:
        # staged logs that are out of reach, or that somebody removed
        return Remains(start, start, end, str(error))


def _staged(root: Path, change: Change, start_offset: int) -> Iterator[Fingerprint]:
    """Return the batches of a commit that end after an offset of the log, with their offsets in the log."""
    opened = {piece.place: LogBatches(Log(root / piece.place)) for piece in change.pieces}
    base_offset = change.start_offset
    for piece in change.pieces:
        for batch in opened[piece.place].fingerprints(piece.start_offset, piece.end_offset):
            if base_offset + batch.count > start_offset:
                yield replace(batch, base_offset=base_offset)
            base_offset += batch.count
