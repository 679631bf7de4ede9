"""The journal of an export, on disk: the plan, the finished steps, and how files are published.

    output/
      topic=orders/date=2024-05-01/part-00000-0000.parquet       published files
      _cordwood/                                                 readers ignore names that begin with _ or .
        export.json         the plan: source, options, offsets, steps. Written first, never changed
        steps/00000.json    the record of a finished step: its files, and the log's own counts
        staging/00001-7f3a…/topic=orders/…                       files that Spark is writing or has written
        lock

A step: Spark writes into a new staging directory; the rows of its files are counted, and the files made durable; the
record of the step is written, which makes the step finished; the files are renamed to their final paths; the staging
directory is removed. After an interruption the next start finds one of two states. A staging directory without a record
is left from an interrupted attempt: it is removed, and the step is done again. One with a record is complete: its
remaining files are renamed. So the published files never contain rows of a step twice, and no published file is ever
removed. Tasks that outlive their driver write into a staging directory that is never read.

Does not use Spark.
"""

import errno
import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cordwood.spark.jobs.errors import ExportError, OutputError
from cordwood.spark.jobs.footers import FileRows
from cordwood.spark.jobs.ranges import Range, Step

__all__ = ["Counts", "Finished", "Journal", "Placed", "Plan"]

_OWN = "_cordwood"
_FORMAT = 1

Counts = dict[tuple[str, int], int]
"""Records by topic and partition."""


@dataclass(frozen=True)
class Plan:
    """What is exported. The first start fixes it for all later ones."""

    source: list[str]
    """Paths, absolute."""

    options: dict[str, str]
    """The options that determine the rows, by name."""

    topic_ids: dict[str, str]
    """Topic ids by partition directory, for directories that have one."""

    starting_offsets: str
    """Where it starts, as `startingOffsets` takes it."""

    ending_offsets: str
    """Where it ends, exclusive."""

    steps: list[Step]
    """The steps, in order."""


@dataclass(frozen=True)
class Placed:
    """A file of a finished step."""

    staged: str
    """Its path in the staging directory."""

    place: str
    """Its final path in the output."""

    rows: int
    """Rows in it."""

    size: int
    """Bytes."""


@dataclass(frozen=True)
class Finished:
    """The record of a finished step."""

    step: int
    staging: str
    """The name of its staging directory."""

    files: list[Placed]
    counts: list[tuple[str, int, int]]
    """Topic, partition, and the number of records that the log has in the step."""

    relaxed: dict[str, str]
    """The options that were relaxed against the plan."""


class Journal:
    """The state of one export. All changes of its output are made here."""

    def __init__(self, output: Path) -> None:
        """Use an output directory, which must exist. Nothing is read or written yet."""
        self.output = output
        self.relaxed: dict[str, str] = {}
        """The options that are relaxed against the plan from now on."""
        self._own = output / _OWN
        self._steps = self._own / "steps"
        self._staging = self._own / "staging"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the output against a second export until the process ends. *Errors*: `ExportError` if it is locked."""
        self._own.mkdir(exist_ok=True)
        with (self._own / "lock").open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                message = f"another export is writing to {self.output}: wait for it, or choose another output"
                raise ExportError(message, code="export_locked", file=str(self.output)) from None
            except OSError as error:
                # a file system without locks: then the caller must run one export at a time
                if error.errno not in {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}:
                    raise
            yield

    def plan(self) -> Plan | None:
        """Return the plan of the first start; `None` in an empty output. *Errors*: `OutputError` in a foreign one."""
        path = self._own / "export.json"
        if path.exists():
            return _plan_from(_read(path), path)
        foreign = sorted(entry.name for entry in self.output.iterdir() if entry.name != _OWN)
        if foreign:
            message = (
                f"{self.output} is not an export of cordwood and is not empty (it has {foreign[0]!r}): choose a new or "
                "an empty directory"
            )
            raise OutputError(message, code="export_foreign", file=str(self.output), found=foreign[0])
        return None

    def begin(self, plan: Plan) -> None:
        """Write the plan."""
        self._steps.mkdir(exist_ok=True)
        self._staging.mkdir(exist_ok=True)
        # the files of a step are durable only if the directories above them are
        _sync(self._own)
        _sync(self.output)
        _write(self._own / "export.json", {"format": _FORMAT, **asdict(plan)})

    def recover(self) -> dict[int, Finished]:
        """Publish the files of finished steps, remove the files of unfinished ones. Returns the finished steps."""
        finished: dict[int, Finished] = {}
        for path in sorted(self._steps.glob("*.json")):
            record = _finished_from(_read(path))
            finished[record.step] = record
        complete = {record.staging: record for record in finished.values()}
        for left in sorted(self._staging.iterdir()):
            if left.name in complete:
                self._place(complete[left.name])
            else:
                # a task that outlived its driver may still write there: the rest is ignored, and removed
                # later
                shutil.rmtree(left, ignore_errors=True)
        return finished

    def staging(self, step: Step) -> Path:
        """Return a new path for a step's files. The writer creates the directory."""
        return self._staging / f"{step.number:05}-{uuid.uuid4().hex}"

    def finish(self, step: Step, staging: Path, files: Mapping[Path, FileRows], counts: Counts) -> Finished:
        """Record a step as finished, with these files of its staging directory, and publish them."""
        placed = []
        for number, (path, found) in enumerate(sorted(files.items())):
            staged = path.relative_to(staging)
            place = staged.with_name(f"part-{step.number:05}-{number:04}.parquet")
            placed.append(Placed(str(staged), str(place), found.rows, found.size))
            _sync(path)
        for folder in {parent for path in files for parent in path.parents if parent.is_relative_to(staging)}:
            _sync(folder)
        if files:
            _sync(self._staging)
        in_log = [(*where, n) for where, n in sorted(counts.items())]
        record = Finished(step.number, staging.name, placed, in_log, self.relaxed)
        _write(self._steps / f"{step.number:05}.json", asdict(record))
        self._place(record)
        return record

    def files(self) -> list[Path]:
        """List the published Parquet files in order, as a reader of the output finds them."""
        found = []
        for folder, folders, names in os.walk(self.output):
            folders[:] = [name for name in folders if not name.startswith(("_", "."))]
            found += [Path(folder, name) for name in names if not name.startswith(("_", "."))]
        return sorted(found)

    def _place(self, record: Finished) -> None:
        staging = self._staging / record.staging
        folders = set()
        for file in record.files:
            place = self.output / file.place
            place.parent.mkdir(parents=True, exist_ok=True)
            folders |= {place.parent, place.parent.parent, self.output}
            staged = staging / file.staged
            if staged.exists():
                staged.replace(place)
        for folder in folders:
            _sync(folder)
        if staging.exists():
            shutil.rmtree(staging, ignore_errors=True)


def _read(path: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        message = f"{path} is damaged ({error}): remove the output, and export again"
        raise ExportError(message, code="export_damaged", file=str(path)) from error
    return document


def _write(path: Path, document: object) -> None:
    """Write a file atomically and durably: after a power failure it is complete or missing."""
    unfinished = path.with_name(f".{path.name}.part")
    with unfinished.open("w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _plan_from(document: dict[str, Any], path: Path) -> Plan:
    if document.get("format") != _FORMAT:
        message = (
            f"{path} has the format {document.get('format')!r}, and this version of cordwood writes {_FORMAT}: "
            "continue with the version that began the export, or export to another output"
        )
        raise ExportError(
            message, code="export_format", file=str(path), expected=str(_FORMAT), found=str(document.get("format"))
        )
    steps = [Step(step["number"], tuple(Range(**part) for part in step["ranges"])) for step in document["steps"]]
    names = ("source", "options", "topic_ids", "starting_offsets", "ending_offsets")
    return Plan(**{name: document[name] for name in names}, steps=steps)


def _finished_from(document: dict[str, Any]) -> Finished:
    files = [Placed(**file) for file in document["files"]]
    counts = [(topic, partition, records) for topic, partition, records in document["counts"]]
    return Finished(document["step"], document["staging"], files, counts, document["relaxed"])
