"""Data directories of a broker, each broken in one way: `cases()`. The whole one is the golden case `16-data-dir`."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from batches import CONTROL, Rec, batch, marker
from corpus import GOLDEN

from interop.odd_files import message
from interop.old_wrappers import wrappers

WHOLE = GOLDEN / "16-data-dir"
PARTITIONS = ("cities-0", "cities-1", "rivers.compact-0")
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
METADATA = "__cluster_metadata-0"
NEWEST_SNAPSHOT = f"{METADATA}/00000000000000000084-0000000001.checkpoint"
OLDER_SNAPSHOT = f"{METADATA}/00000000000000000038-0000000001.checkpoint"

Break = Callable[[Path], object]


def copy_whole(into: Path) -> Path:
    shutil.copytree(WHOLE, into, ignore=lambda _folder, names: [name for name in names if name == "expected"])
    return into


def link_of(name: str) -> Break:
    """Move a partition out of the data directory, and leave a symbolic link to it."""

    def change(path: Path) -> None:
        elsewhere = path.with_name("disk2")
        elsewhere.mkdir()
        (path / name).rename(elsewhere / name)
        (path / name).symlink_to(elsewhere / name)

    return change


def another_of_broker(data: Path, into: Path) -> Path:
    """Make a further data directory of the broker, without partitions."""
    into.mkdir()
    text = (data / "meta.properties").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("directory.id")]
    (into / "meta.properties").write_text("\n".join([*lines, "directory.id=5f1e0f5c8d6b4a0f9d1b2w"]) + "\n")
    return into


def content(change: Callable[[bytes], bytes]) -> Break:
    return lambda file: file.write_bytes(change(file.read_bytes()))


def wrong_count(text: bytes) -> bytes:
    version, count, *lines = text.splitlines(keepends=True)
    return b"".join([version, b"%d\n" % (int(count) + 1), *lines])


def less_by_one(text: bytes) -> bytes:
    version, count, *lines = text.splitlines(keepends=True)
    return b"".join([version, b"%d\n" % (int(count) - 1), *lines])


def in_place(path: Path) -> None:
    """Make a directory in the place of a file."""
    path.unlink(missing_ok=True)
    path.mkdir()


def with_file(path: Path) -> None:
    """Make a directory that is not empty in the place of a file."""
    in_place(path)
    (path / "x").write_bytes(b"")


BYTES: dict[str, Break] = {
    "zeros": content(lambda text: bytes(len(text))),
    "empty": content(lambda _: b""),
    "truncated": content(lambda text: text[: len(text) // 2]),
    "one byte short": content(lambda text: text[:-1]),
    "binary": content(lambda text: bytes((17 * n + 128) % 256 for n in range(len(text)))),
    "missing": Path.unlink,
    "a directory": in_place,
}
LINES: dict[str, Break] = BYTES | {
    "count too high": content(wrong_count),
    "count too low": content(less_by_one),
    "a blank line at the end": content(lambda text: text + b"\n"),
    "a blank line before the entries": content(lambda text: text.replace(b"\n", b"\n\n", 1)),
    "version 1": content(lambda text: b"1" + text[1:]),
    "no number": content(lambda text: text.rstrip() + b"x\n"),
    "a number that is too large": content(lambda text: text.rstrip() + b"9" * 20 + b"\n"),
    "a negative count": content(lambda text: text.replace(b"\n", b"\n-", 1)),
    "version 00": content(lambda text: b"0" + text),
    "line ends of one CR": content(lambda text: text.replace(b"\n", b"\r")),
    "windows line ends": content(lambda text: text.replace(b"\n", b"\r\n")),
    "two spaces": content(lambda text: text.replace(b" ", b"  ")),
}
PROPERTIES: dict[str, Break] = BYTES | {
    "version 2": content(lambda text: text.replace(b"version=1", b"version=2")),
    "no version": content(lambda text: text.replace(b"version=1\n", b"")),
    "no cluster.id": content(lambda text: text.replace(b"cluster.id", b"cluster")),
    "no node.id": content(lambda text: text.replace(b"node.id", b"node")),
    "no directory.id": content(lambda text: text.replace(b"directory.id", b"directory")),
    "a wrong directory.id": content(lambda text: text.replace(b"directory.id=", b"directory.id=?")),
    "a reserved directory.id": content(
        lambda text: re.sub(b"directory.id=.*", b"directory.id=AAAAAAAAAAAAAAAAAAAAAQ", text)
    ),
    "an empty cluster.id": content(lambda text: re.sub(b"cluster.id=.*", b"cluster.id=", text)),
    "version 0 without broker.id": content(lambda text: re.sub(b"version=1|node.id=.*", b"version=0", text)),
    "colons": content(lambda text: text.replace(b"=", b" : ")),
    "a path with backslashes": content(lambda text: text + b"note=C:\\users\n"),
    "a path with backslashes in a comment": content(lambda text: b"# C:\\users\n" + text),
    "a line that is continued": content(lambda text: text.replace(b"version=1", b"ver\\\n  sion=1")),
    "a space after the version": content(lambda text: text.replace(b"version=1", b"version=1 ")),
    "a space after node.id": content(lambda text: text.replace(b"node.id=1", b"node.id=1 ")),
    "a space after directory.id": content(lambda text: re.sub(b"directory.id=.*", rb"\g<0> ", text)),
    "a padded directory.id": content(lambda text: re.sub(b"directory.id=.*", rb"\g<0>==", text)),
    "another directory.id": content(
        lambda text: re.sub(b"directory.id=.*", b"directory.id=5f1e0f5c8d6b4a0f9d1b2w", text)
    ),
}


def field(name: str, value: str) -> Break:
    """Another value of a field of `quorum-state`."""
    return content(lambda text: re.sub(rb'"%s":(\[.*?\]|[^,}]*)' % name.encode(), f'"{name}":{value}'.encode(), text))


QUORUM: dict[str, Break] = (
    BYTES
    | {
        "version 9": content(lambda text: text.replace(b'"data_version":0', b'"data_version":9')),
        "no version": content(lambda text: text.replace(b',"data_version":0', b"")),
        "a version with a fraction": content(lambda text: text.replace(b'"data_version":0', b'"data_version":0.5')),
        "a version above 16 bits": content(lambda text: text.replace(b'"data_version":0', b'"data_version":65536')),
        "no leader": content(lambda text: text.replace(b'"leaderId":1,', b"")),
        "a second line": content(lambda text: text + b"\n{}"),
        "an unknown field": content(lambda text: text.replace(b"{", b'{"x":1,', 1)),
        "text after the object": content(lambda text: text.rstrip() + b" x"),
        "of version 1": content(
            lambda _: (
                b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"%s","data_version":1}' % (b"A" * 22)
            )
        ),
        "of version 1, with a padded UUID": content(
            lambda _: (
                b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"%s==","data_version":1}' % (b"A" * 22)
            )
        ),
        "of version 1, without a UUID": content(
            lambda _: b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"x","data_version":1}'
        ),
    }
    | {
        f"{name} {value}": field(name, value)
        for name, values in {
            "clusterId": ("null", "5"),
            "leaderId": ("true", "9999999999"),
            "leaderEpoch": ('"1"', "1.0", "null", "9999999999", "-3"),
            "votedId": ("9999999999",),
            "appliedOffset": ('"0"', "0.5", "9999999999"),
            "currentVoters": ("null", "{}", "[]", "[1]", "[{}]", '[{"voterId":"1"}]'),
            "data_version": ('"0"', "null", "0.5"),
        }.items()
        for value in values
    }
)
SNAPSHOT: dict[str, Break] = BYTES | {
    "a flipped bit": content(lambda text: text[:150] + bytes([text[150] ^ 1]) + text[151:]),
    "zeros after the end": content(lambda text: text + bytes(100)),
}
FOREIGN = (
    "lost+found", ".snapshot", "backup", "cities-0.bak", "cities-old", "remote-log-index-cache", "-0", "cities-",
    "cities-3", "cities-007", "unknown-0", "cities-0.0123456789abcdef0123456789abcdef-delete", "cities-0-delete",
    "cities-0.1-stray", "cities--1", "a b-0", "__cluster_metadata-1", "__cluster_metadata-0.bak", "cities-99999999999",
    "cities-+1", "cities-+7",
)  # fmt: skip
UNIQUE = "0123456789abcdef0123456789abcdef"
EPOCHS = LINES
IDS: dict[str, Break] = BYTES | {
    "version x": content(lambda text: text.replace(b"version: 0", b"version: x")),
    "version 7": content(lambda text: text.replace(b"version: 0", b"version: 7")),
    "a zero id": content(lambda text: text[: text.index(b"id: ") + 4] + b"AAAAAAAAAAAAAAAAAAAAAA"),
    "a padded id": content(lambda text: text.rstrip() + b"=="),
    "another id": content(lambda text: text[: text.index(b"id: ") + 4] + b"BAAAAAAAAAAAAAAAAAAAAQ"),
    "no space before the version": content(lambda text: text.replace(b"version: ", b"version:")),
    "no space before the id": content(lambda text: text.replace(b"id: ", b"id:")),
    "a space after the version": content(lambda text: text.replace(b"\n", b" \n")),
    "a space after the id": content(lambda text: text.rstrip() + b" "),
    "tabs": content(lambda text: text.replace(b" ", b"\t")),
    "line ends of one CR": content(lambda text: text.replace(b"\n", b"\r")),
}


def of_file(name: str, breaks: dict[str, Break]) -> Iterator[tuple[str, Break]]:
    for how, change in breaks.items():
        yield f"{name}: {how}", lambda path, change=change: change(path / name)


def of_directories() -> Iterator[tuple[str, Break]]:
    for name in FOREIGN:
        yield f"a directory {name}", lambda path, name=name: (path / name).mkdir()
    yield "a file notes", lambda path: (path / "notes").write_text("x")
    yield "a file orders-0", lambda path: (path / "orders-0").write_text("x")
    yield "a link to a directory", lambda path: (path / "link").symlink_to("cities-0")
    yield "a link to nothing", lambda path: (path / "link").symlink_to("nothing")
    yield "a link cities-5 to a partition", lambda path: (path / "cities-5").symlink_to("cities-0")
    yield f"{METADATA}: missing", lambda path: shutil.rmtree(path / METADATA)
    yield "cities-0: missing", lambda path: shutil.rmtree(path / "cities-0")
    yield "nothing broken", lambda path: path
    yield "no checkpoint at all", lambda path: [(path / name).unlink() for name in CHECKPOINTS]


def of_states() -> Iterator[tuple[str, Break]]:
    """Directories that are to be deleted, were set aside or are being moved, and those of other topics."""

    def copy(name: str, into: str) -> Break:
        return lambda path: shutil.copytree(path / name, path / into)

    def both(*changes: Break) -> Break:
        return lambda path: [change(path) for change in changes]

    def with_notes(name: str) -> Break:
        return lambda path: ((path / name).mkdir(), (path / name / "notes.log").write_bytes(b"x"))

    def with_id_of(name: str, other: str) -> Break:
        file = "partition.metadata"
        return lambda path: (path / name / file).write_bytes((path / other / file).read_bytes())

    def negative(name: str) -> Break:
        return lambda path: (path / name).write_text("0\n1\ncities 1 -5\n")

    for state in ("delete", "stray", "future"):
        name = f"cities-9.{UNIQUE}-{state}"
        yield f"notes.log in a -{state} directory", with_notes(name)
        yield f"an empty -{state} directory", lambda path, name=name: (path / name).mkdir()
        yield f"a copy of cities-1 as -{state}", copy("cities-1", f"cities-1.{UNIQUE}-{state}")
        yield (
            f"cities-1 as -{state}",
            lambda path, state=state: (path / "cities-1").rename(path / f"cities-1.{UNIQUE}-{state}"),
        )
    yield (
        "two -future directories",
        both(copy("cities-0", f"cities-0.{UNIQUE}-future"), copy("cities-0", f"cities-0.{UNIQUE[::-1]}-future")),
    )
    yield "a copy of cities-0 as cities-00", copy("cities-0", "cities-00")
    yield "a copy of cities-0 as cities-7", copy("cities-0", "cities-7")
    yield "a copy of cities-0 as towns-0", copy("cities-0", "towns-0")
    yield "a copy of cities-0 as towns-7", copy("cities-0", "towns-7")
    yield "cities-1 on another disk", link_of("cities-1")
    yield "cities-0 with the id of rivers.compact", with_id_of("cities-0", "rivers.compact-0")
    yield "cities-1 with the id of rivers.compact", with_id_of("cities-1", "rivers.compact-0")
    for name in CHECKPOINTS:
        yield f"{name}: a negative offset", negative(name)
    yield f"{METADATA}: empty", lambda path: (shutil.rmtree(path / METADATA), (path / METADATA).mkdir())
    # frame version 1, type 99, version 0
    later = batch(1, [Rec(b"\x01\x63\x00")])
    yield (
        "bootstrap.checkpoint: a record of a later version",
        lambda path: content(lambda text: text + later)(path / "bootstrap.checkpoint"),
    )


def of_partitions() -> Iterator[tuple[str, Break]]:
    def remove(pattern: str) -> Break:
        return lambda path: [file.unlink() for file in path.glob(pattern)]

    def unclean(change: Break) -> Break:
        return lambda path: ((path / ".kafka_cleanshutdown").unlink(), change(path))

    def at_end(file: str, more: bytes) -> Break:
        return lambda path: (path / file).write_bytes((path / file).read_bytes() + more)

    def cut(file: str, size: int) -> Break:
        return lambda path: (path / file).write_bytes((path / file).read_bytes()[:-size])

    last = "cities-0/00000000000000000236.log"
    breaks = {
        "notes.log": lambda path: (path / "cities-0" / "notes.log").write_bytes(b"x"),
        "7.log": lambda path: (path / "cities-0" / "7.log").write_bytes(b""),
        "notes.index": lambda path: (path / "cities-0" / "notes.index").write_bytes(b""),
        "notes.snapshot": lambda path: (path / "cities-0" / "notes.snapshot").write_bytes(b""),
        "no log file": remove("cities-0/*.log"),
        "no file": remove("cities-0/*"),
        "the first log file missing": remove("cities-0/00000000000000000000.log"),
        "a page of zeros at the end": at_end(last, bytes(4096)),
        "twelve zeros at the end": at_end(last, bytes(12)),
        "half a batch at the end": cut(last, 10),
        "a log file that is a directory": lambda path: (path / "cities-0/00000000000000000999.log").mkdir(),
        "an index of zeros": lambda path: BYTES["zeros"](path / "cities-0/00000000000000000000.index"),
        "an index of odd size": at_end("cities-0/00000000000000000000.index", b"xyz"),
        "a snapshot of zeros": lambda path: BYTES["zeros"](path / "cities-0/00000000000000000268.snapshot"),
        "no snapshot": remove("cities-0/*.snapshot"),
        "no index": remove("cities-0/*index"),
        "no time index": remove("cities-0/*.timeindex"),
        "a binary log file": lambda path: BYTES["binary"](path / "cities-0/00000000000000000197.log"),
        "a binary last log file": lambda path: BYTES["binary"](path / last),
        "an empty last log file": lambda path: BYTES["empty"](path / last),
    } | {
        f"a directory {name}": lambda path, name=name: in_place(path / "cities-0" / name)
        for name in (
            "leader-epoch-checkpoint.tmp",
            "partition.metadata.tmp",
            "00000000000000000000.index",
            "00000000000000000000.timeindex",
            "00000000000000000000.txnindex",
            "00000000000000000197.snapshot",
            "00000000000000000236.index",
            "00000000000000000236.timeindex",
            "00000000000000000236.txnindex",
            "00000000000000000268.snapshot",
            "00000000000000000999.txnindex",
            "00000000000000000999.snapshot",
        )
    }
    for name, change in breaks.items():
        yield f"cities-0: {name}", change
        yield f"cities-0: {name}, after a crash", unclean(change)
    yield "after a crash", unclean(lambda path: path)


RECORDS = {
    "of no effect": batch(98, [Rec(b"\x01\x14\x00\x00")], leader_epoch=1),
    "of a later version": batch(98, [Rec(b"\x01\x63\x00")], leader_epoch=1),
    "of frame version 9": batch(98, [Rec(b"\x09\x14\x00")], leader_epoch=1),
    "without bytes": batch(98, [Rec(b"")], leader_epoch=1),
    "of other bytes": batch(98, [Rec(b"\xff" * 9)], leader_epoch=1),
    "with bytes after it": batch(98, [Rec(b"\x01\x14\x00\x00\x00")], leader_epoch=1),
    "of an unknown topic": batch(98, [Rec(b"\x01\x05\x00" + bytes(4) + bytes(range(16)) + b"\x00")], leader_epoch=1),
    "that ends no transaction": batch(98, [Rec(b"\x01\x18\x00\x00")], leader_epoch=1),
    "of control type 9": batch(98, [Rec(b"\x00\x00", key=b"\x00\x00\x00\x09")], leader_epoch=1, attributes=CONTROL),
    "of a commit": marker(98, 7, commit=True, leader_epoch=1),
}


def of_metadata() -> Iterator[tuple[str, Break]]:
    log = f"{METADATA}/00000000000000000000.log"
    for how, record in RECORDS.items():
        change = content(lambda text, record=record: text + record)
        yield f"{METADATA}: a record {how}", lambda path, change=change: change(path / log)
    later = content(lambda text: text + RECORDS["of a later version"] + batch(99, [Rec(b"x")], leader_epoch=1))
    yield f"{METADATA}: a record of a later version, and one of other bytes", lambda path: later(path / log)
    damaged = bytearray(RECORDS["of no effect"])
    damaged[-1] ^= 1
    cut = content(lambda text: text + bytes(damaged) + batch(99, [Rec(b"x")], leader_epoch=1))
    yield f"{METADATA}: damage before a record of other bytes", lambda path: cut(path / log)
    for name in ("quorum-state.tmp", "leader-epoch-checkpoint.tmp"):
        yield f"{METADATA}: a directory {name}", lambda path, name=name: in_place(path / METADATA / name)
    yield (
        f"{METADATA}: a directory quorum-state.tmp with a file",
        lambda path: with_file(path / METADATA / "quorum-state.tmp"),
    )
    yield from of_file(f"{METADATA}/quorum-state", QUORUM)
    yield from of_file(NEWEST_SNAPSHOT, SNAPSHOT)
    yield from of_file(OLDER_SNAPSHOT, BYTES)
    yield from of_file(f"{METADATA}/00000000000000000000.log", BYTES)
    yield from of_file(f"{METADATA}/leader-epoch-checkpoint", LINES)
    yield from of_file(f"{METADATA}/partition.metadata", IDS)
    yield f"{METADATA}: no snapshot", lambda path: [file.unlink() for file in path.glob(f"{METADATA}/*.checkpoint")]
    yield f"{METADATA}: a snapshot with another name", lambda path: (path / METADATA / "x.checkpoint").write_bytes(b"x")
    yield (
        f"{METADATA}: a part of a snapshot",
        lambda path: (path / METADATA / "00000000000000000090-0000000001.checkpoint.part").write_bytes(b"x"),
    )


def of_old_batches() -> Iterator[tuple[str, Break]]:
    """A partition whose only segment is a compressed batch of an old format, with one before it or not."""

    def only(data: bytes) -> Break:
        def change(path: Path) -> None:
            for file in (path / "cities-0").glob("0*"):
                file.unlink()
            (path / "cities-0" / f"{0:020d}.log").write_bytes(data)

        return change

    for magic in (0, 1):
        plain = message(0, b"plain", magic=magic)
        for how, data in wrappers(0, magic):
            yield f"cities-0: v{magic}, {how}", only(data)
        for how, data in wrappers(1, magic):
            yield f"cities-0: v{magic}, {how}, after another", only(plain + data)


def cases() -> dict[str, Break]:
    """The ways to break a copy of `WHOLE`, by name."""
    every = itertools.chain(
        of_directories(),
        *(of_file(name, LINES) for name in CHECKPOINTS),
        of_file("meta.properties", PROPERTIES),
        of_file("bootstrap.checkpoint", SNAPSHOT),
        of_file(".kafka_cleanshutdown", BYTES | {"a directory with a file": with_file}),
        of_metadata(),
        of_file("cities-0/leader-epoch-checkpoint", EPOCHS),
        of_file("cities-0/partition.metadata", IDS),
        of_partitions(),
        of_old_batches(),
        of_states(),
    )
    return dict(every)
