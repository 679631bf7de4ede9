"""`verify`, and what it finds."""

from collections.abc import Callable, Sequence
from typing import Literal, final

from cordwood._stubs.arguments import FilePath

def verify(
    paths: FilePath | Sequence[FilePath],
    *,
    deep: bool = False,
    threads: int = 1,
    io: Literal["auto", "mmap", "pread"] = "auto",
    resume: FilePath | None = None,
    progress: Callable[[int, int], object] | None = None,
    max_batch_bytes: int = 134217728,
) -> Verification:
    """Check every rule of the files of partitions. Nothing is changed.

    *paths*: partition directories, data directories with all their partitions, or `.log` files; of a file, only its
    segment with the indexes is checked. A file that cannot be read is a finding, not an error.

    The checksum of every batch is verified, and the structure of the log; indexes, transaction indexes, producer
    snapshots, leader epochs and checkpoints are compared with the batches; the names and types of the files are
    checked. With *deep* all records are also decoded: that finds batches that a faulty producer wrote, whose checksum
    is right.

    *threads* verify segments at the same time. *io* as in `Log`. *progress* is called about ten times a second with the
    bytes of `.log` files that were verified, and all bytes to verify; an exception from it ends the call.

    *resume*: a file outside the partitions, which is created if it does not exist. Segments that were verified whole
    without a finding are noted in it; a later call with the same file skips those whose files are unchanged.

    *max_batch_bytes*: the largest batch whose records are decoded, as stored and decompressed. A larger one whose
    checksum is right is a warning, `batch_too_large`: it is not damage, and its records were not checked. A compressed
    one of an old format is an error, because the rest of its segment was not checked.

    *Errors*: `ConfigError` for another path, or a *resume* file inside a partition; `LogNotFoundError`.

    >>> found = cw.verify("tests/golden/01-plain/orders-0")
    >>> found
    Verification(is_intact=True, findings=0, partitions=1, segments_checked=4, bytes_checked=238221)
    >>> damaged = cw.verify("tests/golden/damaged/flip-record/tickets-0")
    >>> [(finding.severity, finding.code, finding.position, finding.start_offset) for finding in damaged.findings]
    [('error', 'damaged_batch', 2126, 302)]
    """

@final
class Verification:
    """The result of `verify`."""

    @property
    def findings(self) -> list[Finding]:
        """The findings: by partition in the order of the paths, then by file and position."""
    @property
    def is_intact(self) -> bool:
        """Whether no finding is an error."""
    @property
    def partitions(self) -> int:
        """The number of partitions that were verified."""
    @property
    def segments_checked(self) -> int:
        """The number of segments that were verified now."""
    @property
    def segments_skipped(self) -> int:
        """The number of segments that were skipped, because *resume* says that they were verified before."""
    @property
    def bytes_checked(self) -> int:
        """The bytes of batches that were verified now."""
    @property
    def batches_checked(self) -> int:
        """The number of batches that were verified now."""
    @property
    def unprotected(self) -> Unprotected:
        """What no rule protects against every flipped bit."""
    @property
    def deep(self) -> bool:
        """Whether all records were decoded."""

@final
class Finding:
    """A place where a file breaks a rule. `str()` returns one line."""

    @property
    def severity(self) -> Literal["info", "warning", "error"]:
        """How serious it is.

        `error`: records are damaged or missing, or a file makes Kafka return wrong results, delete records or refuse to
        start. `warning`: something is missing or left over, and no record is affected. `info`: no rule is broken.
        """
    @property
    def code(self) -> str:
        """The rule, a stable name such as `damaged_batch`."""
    @property
    def file(self) -> str:
        """The path of the file or directory."""
    @property
    def position(self) -> int | None:
        """The first byte (inclusive), from the start of the file; `None` if it is not about bytes of it."""
    @property
    def end_position(self) -> int | None:
        """The end of the bytes (exclusive)."""
    @property
    def start_offset(self) -> int | None:
        """The first offset that is concerned; `None` if it is not about offsets."""
    @property
    def end_offset(self) -> int | None:
        """The offset after the last one that is concerned; `None` also if it is not known."""
    @property
    def expected(self) -> str:
        """What the rule demands."""
    @property
    def found(self) -> str:
        """What the file has."""
    @property
    def evidence(self) -> list[str]:
        """Further facts."""
    @property
    def stops_broker(self) -> bool:
        """Whether a broker that has no other data directory does not start with it, or ends soon after."""
    @property
    def takes_directory_offline(self) -> bool:
        """Whether a broker that has other data directories only takes this one offline, and starts with the others.

        It does not start without the one that has the metadata log of the cluster.
        """
    @property
    def kafka(self) -> str:
        """What Kafka does with it when it loads the log, after a clean stop and after a crash."""
    @property
    def advice(self) -> str:
        """What to do: a command, or a sentence; empty if there is nothing to do."""

@final
class Unprotected:
    """Batches with a field that no rule protects against every flipped bit."""

    @property
    def leader_epochs(self) -> int:
        """Batches with a leader epoch that `leader-epoch-checkpoint` does not cover: only a decrease is found."""
    @property
    def base_offsets(self) -> int:
        """Batches next to missing offsets, and the last one: a base offset that moves within the gap is not found."""
