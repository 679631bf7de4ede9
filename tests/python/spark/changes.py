"""Changes of a log on disk between two reads, and the expected result of each kind of read.

The log has four segments of thirty records, in batches of three. The expected rows are computed here, from what was
written.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product, starmap
from pathlib import Path
from typing import Any

from batches import Rec, batch, name

Values = dict[int, bytes]
"""Values by offset."""

SEGMENTS = (0, 30, 60, 90)
END = 120
IDS = ("aFsHoJ8mSkaI5w7rWQb5Qg", "6sc1tPBuS4ODmV6YKUWCjg")
MODES = ("FAILFAST", "DROPMALFORMED", "PERMISSIVE")


def values(generation: str, *offsets: int) -> Values:
    return {offset: f"{generation} {offset}".encode() for offset in offsets}


def batch_of(generation: str, first: int, epoch: int) -> bytes:
    records = [
        Rec(value, timestamp=1000 + offset) for offset, value in values(generation, *range(first, first + 3)).items()
    ]
    return batch(first, records, leader_epoch=epoch)


def append(  # noqa: PLR0917
    path: Path, segment: int, first: int, end: int, generation: str = "old", epoch: int = 5
) -> None:
    with (path / name(segment)).open("ab") as file:
        for offset in range(first, end, 3):
            file.write(batch_of(generation, offset, epoch))


def make(path: Path, generation: str = "old", end: int = END, topic_id: str = IDS[0], epoch: int = 5) -> None:
    path.mkdir(parents=True)
    (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    for base in range(0, end, 30):
        append(path, base, base, base + 30, generation, epoch)


def aged(path: Path) -> None:
    """Make files an hour old: a recently written file is always checked again."""
    moment = time.time() - 3600
    for file in [*path.iterdir(), path]:
        os.utime(file, (moment, moment))


def remove(*segments: int) -> Callable[[Path], None]:
    def step(path: Path) -> None:
        for segment in segments:
            (path / name(segment)).unlink()

    return step


SIZE = len(batch_of("old", 60, 5))


def cut(size: int) -> Callable[[Path], None]:
    """Cut the third segment, in place."""
    return lambda path: os.truncate(path / name(60), size)


def written(path: Path) -> None:
    """Write the third segment again, in place."""
    with (path / name(60)).open("r+b") as file:
        for offset in range(60, 90, 3):
            file.write(batch_of("old", offset, 5))


def all_removed(path: Path) -> None:
    """Remove every segment except for an index, which a new partition does not have."""
    remove(*SEGMENTS)(path)
    (path / "00000000000000000000.index").touch()


def another_created(path: Path) -> None:
    """Create the files of a new partition before its first segment, as Kafka does."""
    created = path.with_name(f"{path.name[:-1]}{int(path.name[-1]) + 1}")
    created.mkdir()
    (created / "partition.metadata").write_text(f"version: 0\ntopic_id: {IDS[0]}")
    (created / "leader-epoch-checkpoint").write_text("0\n0\n")


def damaged(path: Path) -> None:
    """Change a byte of a record in the batch of offsets 69 to 71, in place."""
    with (path / name(60)).open("r+b") as file:
        file.seek(4 * SIZE - 2)
        byte = file.read(1)[0]
        file.seek(4 * SIZE - 2)
        file.write(bytes([byte ^ 1]))


def cut_back(epoch: int) -> Callable[[Path], None]:
    """Truncate and rewrite from offset 36, as a follower whose leader has other records; the log becomes longer."""

    def step(path: Path) -> None:
        remove(60, 90)(path)
        os.truncate(path / name(30), 2 * SIZE)
        append(path, 30, 36, 150, "new", epoch)

    return step


def created_again(path: Path) -> None:
    shutil.rmtree(path)
    make(path, "new", 150, IDS[1])


def compacted(path: Path) -> None:
    """Compact as Kafka's cleaner: batches with fewer records than offsets, and gaps up to the next segment."""
    for base, kept in ((0, 3), (30, 48)):
        record = Rec(values("old", kept + 1)[kept + 1], timestamp=1000, offset_delta=1)
        sparse = batch(kept, [record], leader_epoch=5, count=1, last_offset_delta=2)
        (path / f"{name(base)}.new").write_bytes(sparse)
        (path / f"{name(base)}.new").rename(path / name(base))


@dataclass(frozen=True)
class Found:
    """The expected result of a read after a change: rows, and whether lost data or damage must be reported."""

    rows: Values
    lost: bool = False
    damaged: bool = False

    def since(self, offset: int) -> Values:
        return {at: value for at, value in self.rows.items() if at >= offset}


@dataclass(frozen=True)
class Change:
    """The steps of a change, and the expected results after it of a batch and of a stream at the offset `at`."""

    name: str
    steps: tuple[Callable[[Path], None], ...]
    batch: Found
    stream: Found
    at: int = 45
    load: str = "t-0"
    """The loaded path, relative to the data directory."""

    def __str__(self) -> str:
        return self.name


ALL = values("old", *range(END))
LATER = values("old", *range(45, END))


def without(rows: Values, *offsets: int) -> Values:
    return {offset: value for offset, value in rows.items() if offset not in offsets}


def both(label: str, *steps: Callable[[Path], None], gone: range = range(0), load: str = "t-0", **what: bool) -> Change:
    """A change with the same effect on a batch and a stream."""
    found = Found(without(ALL, *gone), **what), Found(without(LATER, *gone), **what)
    return Change(label, steps, *found, load=load)


NEW = values("new", *range(150))
CHANGES = [
    both("nothing"),
    Change(
        "records and a segment are appended",
        (lambda path: append(path, 120, 120, 150),),
        Found(values("old", *range(150))),
        Found(values("old", *range(45, 150))),
    ),
    both("a sealed segment is cut between batches", cut(5 * SIZE), gone=range(75, 90), lost=True),
    both("a sealed segment is cut between batches and written again", cut(5 * SIZE), written),
    both("a sealed segment is cut inside a batch", cut(5 * SIZE + 40), gone=range(75, 90), damaged=True),
    both("a sealed segment is cut inside a batch and written again", cut(5 * SIZE + 40), written),
    both("a record in a sealed segment is damaged", damaged, gone=range(69, 72), damaged=True),
    both("a record in a sealed segment is damaged and repaired", damaged, written),
    both("a segment in the middle is removed", remove(60), gone=range(60, 90), lost=True),
    both("two segments in the middle are removed", remove(30, 60), gone=range(30, 90), lost=True),
    both("all segments of a partition are removed", all_removed, gone=range(END), lost=True),
    both(
        "all segments of a partition are removed in a data directory", all_removed, gone=range(END), load="", lost=True
    ),
    both("all segments of a partition are removed under a glob", all_removed, gone=range(END), load="t-*", lost=True),
    both("a partition is created in a data directory", another_created, load=""),
    both("a partition is created under a glob", another_created, load="t-*"),
    Change(
        "retention takes the first segments",
        (remove(0, 30),),
        Found(values("old", *range(60, END))),
        Found(values("old", *range(60, END)), lost=True),
    ),
    Change(
        "the last segment is removed",
        (remove(90),),
        Found(values("old", *range(90))),
        Found(values("old", *range(45, 90))),
    ),
    Change(
        "the last segment is removed under a stream",
        (remove(90),),
        Found(values("old", *range(90))),
        Found({}, lost=True),
        at=105,
    ),
    Change(
        "the log is cut back and written again in the same epoch",
        (cut_back(5),),
        Found({**values("old", *range(36)), **values("new", *range(36, 150))}),
        Found(values("new", *range(45, 150)), lost=True),
    ),
    Change(
        "the log is cut back and written again in the next epoch",
        (cut_back(6),),
        Found({**values("old", *range(36)), **values("new", *range(36, 150))}),
        Found(values("new", *range(45, 150)), lost=True),
    ),
    Change(
        "the topic is deleted and created again, and longer",
        (created_again,),
        Found(NEW),
        Found(values("new", *range(45, 150)), lost=True),
    ),
    Change(
        "the first segments are compacted",
        (compacted,),
        Found({**values("old", 4, 49), **values("old", *range(60, END))}),
        Found(values("old", 49, *range(60, END))),
    ),
]


@dataclass(frozen=True)
class Cell:
    """One cell of the table: a change, the state of the session, and how it is read."""

    change: Change
    is_stream: bool
    session: str
    """When the session first read the log: `new` (never), `before` the change, or `between` its steps."""
    mode: str
    fails: bool

    @property
    def options(self) -> dict[str, Any]:
        return {"mode": self.mode, "failOnDataLoss": self.fails}

    @property
    def found(self) -> Found:
        return self.change.stream if self.is_stream else self.change.batch

    @property
    def error(self) -> str | None:
        """The code of the expected error."""
        if self.found.damaged and self.mode == "FAILFAST":
            return "CORDWOOD_CORRUPT_BATCH"
        return "CORDWOOD_SEGMENT_GONE" if self.found.lost and self.fails else None

    @property
    def is_warned_of(self) -> bool:
        return self.error is None and (self.found.lost or self.found.damaged)

    def __str__(self) -> str:
        words = [
            self.change.name,
            "stream" if self.is_stream else "batch",
            f"session {self.session}",
            self.mode,
            f"failOnDataLoss={str(self.fails).lower()}",
        ]
        return ", ".join(words)

    def reads_before(self, step: int) -> bool:
        """Whether the session reads the log before a step of the change."""
        return self.session == "before" or (self.session == "between" and step > 0)


TABLE = [
    cell
    for cell in starmap(Cell, product(CHANGES, (False, True), ("new", "between", "before"), MODES, (True, False)))
    if cell.session != "between" or len(cell.change.steps) > 1
]
