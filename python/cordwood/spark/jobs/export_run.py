"""The run of an export: every step is checked, and the whole export at the end. Does not use Spark."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from cordwood.spark.jobs.errors import ExportError
from cordwood.spark.jobs.footers import FileRows, read_footers
from cordwood.spark.jobs.journal import Counts, Finished, Journal, Plan
from cordwood.spark.jobs.ranges import Step

__all__ = ["Export", "Progress", "carry_out"]


@dataclass(frozen=True)
class Export:
    """The result of an export."""

    output: str
    """The output directory."""

    rows: int
    """Rows in the output; with `mode=PERMISSIVE` including rows for damage."""

    files: int
    """Parquet files in the output."""

    size: int
    """Size of these files, bytes."""

    ranges: int
    """Ranges of offsets that this call exported."""

    skipped: int
    """Ranges that earlier calls exported."""

    starting_offsets: str
    """Where the export starts, as `startingOffsets` takes it."""

    ending_offsets: str
    """Where it ends (exclusive). As the `startingOffsets` of the next export, that one continues from here."""


@dataclass(frozen=True)
class Progress:
    """The progress of an export."""

    steps_done: int
    """Finished steps, including those of earlier calls."""

    steps: int
    """All steps."""

    size_done: int
    """Approximate number of bytes of the log that are exported, including earlier calls."""

    size: int
    """Approximate number of bytes of the log that the whole export reads."""

    rows: int
    """Published rows."""

    bytes_per_second: float
    """Bytes of the log per second, in this call; 0 before the first step is finished."""

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds left; `None` before the first step is finished."""
        left = self.size - self.size_done
        return left / self.bytes_per_second if self.bytes_per_second > 0 else None


def carry_out(
    journal: Journal,
    plan: Plan,
    write: Callable[[Step, Path], None],
    count: Callable[[Step], Counts],
    progress: Callable[[Progress], None],
) -> Export:
    """Run the steps that are not finished, and compare the output with the log.

    *write* writes a step's files into a new directory; *count* counts a step's records independently.
    *Errors*: `ExportError` if the counts differ; what *write* and *count* raise.
    """
    start = time.monotonic()
    finished = journal.recover()
    skipped = [step for step in plan.steps if step.number in finished]

    def report() -> None:
        done = sum(step.size for step in plan.steps if step.number in finished)
        done_here = done - sum(step.size for step in skipped)
        rows = sum(file.rows for record in finished.values() for file in record.files)
        whole = sum(step.size for step in plan.steps)
        rate = done_here / (time.monotonic() - start) if done_here else 0.0
        progress(Progress(len(finished), len(plan.steps), done, whole, rows, rate))

    report()
    for step in plan.steps:
        if step.number in finished:
            continue
        staging = journal.staging(step)
        write(step, staging)
        files = _footers(path for path in staging.rglob("*.parquet") if not path.name.startswith((".", "_")))
        counts = count(step)
        _compare(
            counts,
            _records(files),
            f"in step {step.number}. Nothing of this step was published. Check that {journal.output} is the same "
            "directory for the driver and all executors, and that no process rewrites the log; then start again",
            staging,
        )
        finished[step.number] = journal.finish(step, staging, files, counts)
        report()
    rows, size, files_found = _checked(journal, finished.values())
    exported = sum(len(step.ranges) for step in plan.steps)
    already = sum(len(step.ranges) for step in skipped)
    return Export(
        str(journal.output),
        rows,
        files_found,
        size,
        exported - already,
        already,
        plan.starting_offsets,
        plan.ending_offsets,
    )


def _checked(journal: Journal, finished: Iterable[Finished]) -> tuple[int, int, int]:
    """Compare the published files with the records of the steps. Returns rows, bytes and files."""
    wanted: Counts = Counter()
    recorded: set[Path] = set()
    for record in finished:
        recorded |= {journal.output / file.place for file in record.files}
        for topic, partition, records in record.counts:
            wanted[topic, partition] += records
    seen = journal.files()
    for path in seen:
        if path not in recorded:
            message = f"{path} is not part of this export, but readers would include its rows: move it away"
            raise ExportError(message, code="export_foreign_file", file=str(path))
    missing = sorted(recorded - set(seen))
    files = _footers(seen)
    changed = "files were changed"
    if missing:
        changed = f"{missing[0]} is missing" + (f", and {len(missing) - 1} more" if len(missing) > 1 else "")
    advice = f"{changed}; restore the files, or export again to another output"
    _compare(wanted, _records(files), f"in {journal.output}: {advice}", journal.output)
    if missing:
        raise ExportError(advice, code="export_missing_file", file=str(missing[0]))
    return sum(file.rows for file in files.values()), sum(file.size for file in files.values()), len(files)


def _footers(paths: Iterable[Path]) -> dict[Path, FileRows]:
    in_order = sorted(paths)
    return dict(zip(in_order, read_footers(in_order), strict=True))


def _records(files: Mapping[Path, FileRows]) -> Counts:
    found: Counts = Counter()
    for path, file in files.items():
        topic = unquote(next(name.removeprefix("topic=") for name in path.parts[::-1] if name.startswith("topic=")))
        for partition, records in file.records.items():
            found[topic, partition] += records
    return found


def _compare(wanted: Counts, found: Counts, where: str, file: Path) -> None:
    for topic, partition in sorted(wanted.keys() | found.keys()):
        in_log, in_files = wanted.get((topic, partition), 0), found.get((topic, partition), 0)
        if in_log != in_files:
            message = f"{topic}-{partition}: the log has {in_log} records and the Parquet files {in_files}, {where}"
            raise ExportError(message, code="export_counts", file=str(file), expected=str(in_log), found=str(in_files))
