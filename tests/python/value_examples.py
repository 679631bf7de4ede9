"""Examples of the classes of values, from calls on files of real brokers and on logs that are written here."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Iterator
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any

import corpus
from batches import TRANSACTIONAL, Rec, batch, write_partition

import cordwood as cw
from cordwood import _core
from cordwood._core import _Query, _SourceOptions

DATA = corpus.GOLDEN / "16-data-dir"
MANY = 3


def classes() -> dict[str, type]:
    """All classes of `cordwood` and `cordwood._core`, by name."""
    found = {}
    for module, names in ((_core, dir(_core)), (cw, cw.__all__)):
        for name in names:
            member = getattr(module, name)
            if inspect.isclass(member):
                found[name] = member
    return found


def attributes(value: object) -> dict[str, Any]:
    """The public attributes of a value that are no methods. (The task of a piece has the piece.)"""
    names = (name for name in dir(type(value)) if not name.startswith("_") and name != "task")
    found = {name: getattr(value, name) for name in names}
    return {name: attribute for name, attribute in found.items() if not callable(attribute)}


def fields(value: object) -> object:
    """A value as dicts and lists of the attributes, without a comparison of the value itself."""
    if isinstance(value, list | tuple):
        return [fields(item) for item in value]
    if isinstance(value, cw.FlushMode):
        return str(value)
    if isinstance(value, cw.Table):
        return [str(value.schema), value.to_dicts(), fields(value.damaged_ranges)]
    if type(value).__module__.startswith("cordwood") and not isinstance(value, Enum):
        return {"class": type(value).__name__, **{name: fields(own) for name, own in attributes(value).items()}}
    return value


def _within(value: object) -> Iterator[object]:
    """A value of the library, and those in its attributes."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _within(item)
    elif type(value).__module__.startswith("cordwood"):
        yield value
        if not isinstance(value, Enum | cw.Segment):
            yield from _within(list(attributes(value).values()))


def _of_a_log(path: Path) -> Iterator[object]:
    log = cw.Log(path)
    yield list(log.segments)
    yield log.locate(log.log_start_offset) if log.log_end_offset > log.log_start_offset else None
    yield log.offset_for_time(0)
    yield [log.offset_gaps(), log.producers, log.plan(10_000)]
    scan = log.scan(on_damage="skip", columns=["offset"])
    scan.to_arrow()
    yield [scan.stats, scan.damaged_ranges]
    yield list(islice(log.records(on_damage="skip"), MANY))
    yield cw.plan_retention(log, cw.LogConfig(cleanup_policy="delete", retention_ms=1))
    for segment in log.segments:
        for index in (segment.offset_index, segment.time_index, segment.transaction_index):
            yield [] if index is None else list(islice(index, MANY))


def _of_a_partition(path: Path) -> Iterator[object]:
    yield cw.verify(path)
    yield [cw.plan_kafka_load(path, clean=clean) for clean in (True, False)]
    yield cw.classify(path)
    for call in (cw.LogWriter.plan_recovery, cw.rebuild_indexes, lambda path: cw.repair(path, policy="salvage")):
        try:
            yield call(path)
        except cw.CordwoodError:
            continue


def _of_a_writer(folder: Path) -> Iterator[object]:
    config = cw.LogConfig(segment_bytes=2000, cleanup_policy="compact")
    with cw.LogWriter(folder / "orders-0", config=config) as writer:
        yield [writer.append(b"v" * n, key=b"k%d" % (n % 3), timestamp=n) for n in range(1, 99)]
        yield writer.producer("import").append(b"v", key=b"k")
        with writer.transaction("orders") as transaction:
            transaction.append(b"v", key=b"k")
        yield [writer.producers, writer.metrics(), config, cw.FlushMode.group(), cw.FlushMode.interval(ms=2)]
        yield cw.plan_compaction(cw.Log(writer.path), config)
        yield writer.compact()
        position = cw.Log(writer.path).position("app")
        position.commit(3)
        yield position.committed
    image = folder / "image"
    image.write_bytes(b"".join(file.read_bytes() for file in corpus.partition("01-small").path.glob("*.log")))
    yield cw.carve(image)
    yield cw.copy(DATA, folder / "copied")
    far = write_partition(folder / "far-0", [(0, [batch(0, [Rec()]), batch(1 << 32, [Rec()])])])
    yield cw.LogWriter.plan_recovery(far)
    open_transaction = batch(0, [Rec()], attributes=TRANSACTIONAL, producer_id=7)
    log = write_partition(folder / "open-0", [(0, [open_transaction])])
    yield [cw.Log(log).producers, cw.open_transactions(log)]


def _of_replicas(folder: Path) -> Iterator[object]:
    leader, follower = (corpus.GOLDEN / f"21-replica-{role}" / "copied-0" for role in ("leader", "follower"))
    yield cw.diff(leader, follower)
    for number, (own, other) in enumerate([(b"a", b"b"), (b"a", b"a")]):
        for name, value, epoch in (("a", own, 0), ("b", other, number)):
            (folder / f"{name}{number}").mkdir()
            with cw.LogWriter(folder / f"{name}{number}" / "t-0", leader_epoch=epoch) as writer:
                writer.append(value, timestamp=5)
        yield cw.diff(folder / f"a{number}" / "t-0", folder / f"b{number}" / "t-0")
    damaged = Path(shutil.copytree(follower, folder / "copied-0"))
    log = damaged / f"{43:020}.log"
    log.write_bytes(log.read_bytes()[:-1] + b"\xff")
    yield cw.diff(leader, damaged)


def examples(folder: Path) -> dict[str, list[Any]]:
    """Examples of values by the name of their class, each with others."""
    for name in ("writer", "replicas"):
        (folder / name).mkdir()
    sources: list[Iterator[object]] = [_of_a_writer(folder / "writer"), _of_replicas(folder / "replicas")]
    sources += [_of_a_log(part.path) for part in corpus.partitions()]
    sources += [_of_a_partition(part.path) for part in corpus.partitions()]
    for case in sorted((corpus.GOLDEN / "damaged").iterdir()):
        [path] = (path for path in case.iterdir() if path.is_dir() and path.name != "expected")
        sources += [_of_a_partition(path)]
        if case.name in ("flip-record", "flip-crc", "batch-removed"):
            sources += [_of_a_log(path)]
    tables = [cw.consumer_offsets, cw.consumer_groups, cw.transactions, cw.metadata, cw.metadata_records]
    sources += [iter([table(DATA) for table in tables])]
    sources += [iter([cw.classify(file) for file in sorted(DATA.rglob("*"))]), iter(cw.TimestampType)]
    options = _SourceOptions({"path": str(DATA / "cities-0")})
    sources += [iter([options, *(list(part) for part in _Query(options).plan())])]
    found: dict[str, list[Any]] = {}
    for source in sources:
        for result in source:
            for value in _within(result):
                found.setdefault(type(value).__name__, []).append(value)
    return found
