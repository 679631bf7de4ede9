"""Repairing a partition, and carving batches out of an image."""

from typing import Literal, final

from cordwood._stubs.arguments import FilePath, Settings

def repair(
    path: FilePath,
    *,
    policy: Literal["torn_tail", "kafka", "salvage"] = "torn_tail",
    config: Settings | None = None,
    dry_run: bool = True,
    max_batch_bytes: int = 134217728,
) -> RepairPlan:
    """Return what a repair of a partition directory changes, and change it if *dry_run* is `False`.

    *policy* says what is mended, and what is given up for it:

    - `"torn_tail"` cuts a torn write: damage at the end of the last segment, after which no valid batch follows. Other
      damage of a `.log` is an error, and so are segments that are missing since a `LogWriter` closed the log.
    - `"salvage"` takes damaged bytes out and keeps every intact batch with its offsets, so that offsets are missing
      where the damage was. A batch whose offset, length, leader epoch or magic is wrong, which no checksum covers, is
      corrected if its checksum and its neighbours determine the value; it is never guessed. An offset and a leader
      epoch are corrected only if one bit differs. A batch that a disk wrote to a wrong place of its `.log` is put
      where its offsets are missing; a copy of another batch is taken out. Between two damaged places, batches that
      nothing distinguishes from a copy inside a record's value are taken out too; `quarantine/` has their bytes.
    - `"kafka"` cuts the log at the first damage and removes everything after it, as a broker does at a wrong checksum.
      A broker does not compare offsets and leader epochs: where a batch with a right checksum contradicts others, it
      usually keeps the log, but this policy cuts it; the reason of the cut says so. Damage below the log start offset
      is taken out only. A cut below the log start offset is an error.

    All of them rebuild indexes and leader epochs that do not match the batches, remove what an interrupted compaction,
    split or deletion left, and lower checkpoints above the end of the log. `.deleted` files stay if their records may
    be nowhere else (`kept_files`). Bytes that are taken out are kept in `quarantine/`, in the partition directory.
    *config* has the settings that determine the entries of rebuilt indexes, as in `rebuild_indexes`; `max_batch_bytes`,
    too: a batch above it is never taken out, but a `BatchTooLargeError` if its offsets are in its compressed records.

    Transaction indexes and producer snapshots after a change of the log become those that `rebuild_indexes` derives
    from the repaired log. Without a change, a transaction index is rebuilt if it is damaged or contradicts the ABORT
    markers, and a snapshot only if it is damaged: one that lacks idle producers, which a broker forgets, is left.

    A repair takes the locks of a `LogWriter`. It can be interrupted at any point and called again. A second one changes
    nothing.

    *Errors*: `CorruptLogError` for damage that the policy does not mend; `LockedError` if a broker or a writer has the
    partition open.

    >>> plan = cw.repair("tests/golden/damaged/flip-record/tickets-0", policy="salvage")
    >>> plan.is_applied, plan.kept_batches, plan.log_end_offset
    (False, 82, 370)
    >>> [(lost.start_offset, lost.end_offset, lost.size) for lost in plan.lost_ranges]
    [(302, 303, 170)]
    """

@final
class RepairPlan:
    """What a repair changes in a partition directory, or has changed.

    It does not list the files of a `LogWriter` (`.cordwood.*`), whose recovery points are lowered with the log, unless
    they show that records are missing.
    """

    @property
    def path(self) -> str:
        """The absolute path of the partition directory."""
    @property
    def policy(self) -> Literal["torn_tail", "kafka", "salvage"]:
        """The policy."""
    @property
    def is_clean(self) -> bool:
        """Whether there is nothing to repair."""
    @property
    def is_applied(self) -> bool:
        """Whether the changes were made."""
    @property
    def actions(self) -> list[RepairAction]:
        """The changes."""
    @property
    def lost_ranges(self) -> list[LostRange]:
        """The parts of the log that are lost; their bytes are kept in `quarantine/` only."""
    @property
    def lost_bytes(self) -> int:
        """The number of bytes in the lost ranges."""
    @property
    def kept_batches(self) -> int:
        """The number of batches in the log after the repair."""
    @property
    def kept_bytes(self) -> int:
        """The bytes of these batches."""
    @property
    def segments(self) -> list[int]:
        """The base offsets of the segments after the repair, ascending."""
    @property
    def log_end_offset(self) -> int:
        """The log end offset after the repair (exclusive)."""
    @property
    def kept_files(self) -> list[str]:
        """The `.deleted` files that stay: the records of their segments may be nowhere else. A broker deletes them.

        `verify` names the offsets of each, and how its records can be read.
        """
    @property
    def foreign_files(self) -> list[str]:
        """Files of others, which are left: they are named like files of a segment, but without an offset of 20 digits.

        A broker does not load the partition before they are moved away.
        """
    @property
    def has_clean_shutdown(self) -> bool:
        """Whether the data directory has the broker's `.kafka_cleanshutdown`, which a repair removes before it begins.

        At its next start the broker recovers all partitions, instead of trusting files that have changed.
        """

@final
class RepairAction:
    """A change of a repair. `str()` returns a sentence."""

    @property
    def kind(
        self,
    ) -> Literal[
        "cut",
        "take_out",
        "correct_header",
        "correct_marker",
        "move_batch",
        "remove_segment",
        "remove_file",
        "finish_replacement",
        "rebuild",
        "replace_leader_epochs",
        "lower_checkpoint",
    ]:
        """What is done."""
    @property
    def file(self) -> str:
        """The path of the file."""
    @property
    def start_position(self) -> int:
        """The first byte that is removed or replaced, in bytes from the start of the file as it was."""
    @property
    def end_position(self) -> int:
        """The end of these bytes (exclusive)."""
    @property
    def size(self) -> int:
        """The number of these bytes."""
    @property
    def reason(self) -> str:
        """Why, with the evidence."""
    @property
    def quarantine(self) -> str | None:
        """The file in `quarantine/` that keeps the bytes; `None` if no byte is removed, or all are zero."""

@final
class LostRange:
    """A range of a `.log` that is lost. `str()` returns a sentence."""

    @property
    def file(self) -> str:
        """The path of the `.log`."""
    @property
    def start_position(self) -> int:
        """The first byte, in bytes from the start of the file as it was."""
    @property
    def end_position(self) -> int:
        """The end (exclusive)."""
    @property
    def size(self) -> int:
        """The size of the range in bytes."""
    @property
    def start_offset(self) -> int:
        """The first offset that may be lost."""
    @property
    def end_offset(self) -> int | None:
        """The end of these offsets (exclusive); equal to the start if no offset is lost, as with a repeated batch.

        `None` if it is not known, because nothing valid follows.
        """
    @property
    def reason(self) -> str:
        """Why it is lost."""
    @property
    def quarantine(self) -> str | None:
        """The file in `quarantine/` that keeps the bytes; `None` if all are zero."""

def carve(image: FilePath, destination: FilePath | None = None, *, min_records: int = 1) -> CarveReport:
    """Find every whole batch of *image*, at any position, and group the batches into runs.

    *image* is a file of any kind, such as a disk image or a truncated or overwritten segment, or a directory, whose
    files are searched whatever their names. With *destination*, a new or empty directory, each run is written there as
    a partition directory `carved-0`, `carved-1` and so on, with its offsets, indexes (also of aborted transactions) and
    leader epochs. Runs of fewer than *min_records* records are left out.

    A batch is found if its header is possible and its checksum matches. One inside a record of another batch is left
    out, and so is one that was found before with the same bytes. The bytes of a batch do not name its partition:
    batches belong to one run if they follow each other, or if the offsets of one range continue the offsets of another
    exactly. `CarvedRun.confidence` says which.

    *Errors*: `LogNotFoundError`; `ConfigError` if the destination is not empty, or inside *image*.

    >>> report = cw.carve("tests/golden/damaged/flip-record/tickets-0/00000000000000000285.log")
    >>> [(run.first_offset, run.last_offset, run.records) for run in report.runs]
    [(285, 301, 17), (303, 369, 67)]
    """

@final
class CarveReport:
    """The batches that were found in an image."""

    @property
    def path(self) -> str:
        """The absolute path of the image, or of the directory."""
    @property
    def runs(self) -> list[CarvedRun]:
        """The runs, by their first offset."""
    @property
    def small_runs(self) -> int:
        """The number of runs with fewer records than `min_records`, which are neither listed nor written."""
    @property
    def repeated_batches(self) -> int:
        """The number of batches with the same bytes as one that was found before. They are counted in no run."""
    @property
    def given_up(self) -> int:
        """The number of possible batches above 1 MiB that were not checked, because too many overlapped."""
    @property
    def bytes_searched(self) -> int:
        """Bytes that were searched."""
    @property
    def destination(self) -> str | None:
        """The directory with the carved partitions; `None` if nothing was written."""

@final
class CarvedRun:
    """Batches that belong together: a part of one partition. `str()` says how sure that is."""

    @property
    def pieces(self) -> list[CarvedPiece]:
        """Where its batches are, in the order of their offsets."""
    @property
    def first_offset(self) -> int:
        """The first offset."""
    @property
    def last_offset(self) -> int:
        """The last offset (inclusive)."""
    @property
    def batches(self) -> int:
        """The number of batches."""
    @property
    def records(self) -> int:
        """The number of records."""
    @property
    def bytes(self) -> int:
        """The bytes of its batches."""
    @property
    def largest_batch(self) -> int:
        """The size of the largest batch, bytes."""
    @property
    def timestamps(self) -> tuple[int, int] | None:
        """The smallest and the largest of its batches' largest timestamps; `None` if no batch has one."""
    @property
    def leader_epochs(self) -> tuple[int, int]:
        """The leader epochs of the first and the last batch; -1 if it has none."""
    @property
    def magics(self) -> list[int]:
        """The formats of its batches: 0, 1, 2."""
    @property
    def codecs(self) -> list[str]:
        """The names of the codecs."""
    @property
    def producer_ids(self) -> list[int]:
        """The producer ids, the first 1,000 of them."""
    @property
    def gaps(self) -> int:
        """The number of places at which offsets are missing."""
    @property
    def conflicts(self) -> list[int]:
        """The numbers of other runs that have some of its offsets with other bytes, the first 16 of them.

        They are of other partitions, or of another version of this one.
        """
    @property
    def confidence(self) -> Literal["high", "gaps", "joined", "single"]:
        """How sure it is that the batches are of one partition.

        `"high"`: they follow each other without a missing offset; `"gaps"`: with missing offsets; `"joined"`: ranges
        were joined, because their offsets continue exactly; `"single"`: it is one batch.
        """
    @property
    def directory(self) -> str | None:
        """The partition directory with the run; `None` if nothing was written."""

@final
class CarvedPiece:
    """A range of an image."""

    @property
    def file(self) -> str:
        """The path of the image."""
    @property
    def start_position(self) -> int:
        """The first byte, in bytes from the start of the image."""
    @property
    def end_position(self) -> int:
        """The end (exclusive)."""
    @property
    def first_offset(self) -> int:
        """The first offset."""
    @property
    def last_offset(self) -> int:
        """The last offset (inclusive)."""
