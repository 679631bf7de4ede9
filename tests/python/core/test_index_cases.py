"""The index writers, compared with Kafka's classes step by step, with Kafka's files, and with a list."""

from __future__ import annotations

import contextlib
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from batches import name
from hypothesis import given
from hypothesis import strategies as st

import cordwood as cw

ROOT = Path(__file__).resolve().parents[2]
CASES = [json.loads(line) for line in (ROOT / "vectors" / "index_cases.jsonl").read_text().splitlines()]


def last(index: Any) -> list[int]:
    entry = index.last_entry
    return [entry.offset] if isinstance(index, cw.OffsetIndex) else [entry.timestamp, entry.offset]


def open_case(case: dict[str, Any], path: Path) -> Any:
    base = case["base_offset"]
    if case["kind"] == "offset":
        return cw.OffsetIndexWriter(path, base_offset=base, max_index_size=case["max_index_size"])
    if case["kind"] == "time":
        return cw.TimeIndexWriter(path, base_offset=base, max_index_size=case["max_index_size"])
    return cw.TransactionIndexWriter(path, base_offset=base)


def do(index: Any, verb: str, numbers: list[int]) -> Any:
    if verb == "maybe_append":
        return index.maybe_append(numbers[0], numbers[1], skip_full_check=bool(numbers[2]))
    if verb == "append" and isinstance(index, cw.TransactionIndex):
        fields = dict(zip(("producer_id", "first_offset", "last_offset", "last_stable_offset"), numbers, strict=True))
        return index.append(cw.AbortedTransaction(**fields)) if numbers[0] % 2 else index.append(**fields)
    return getattr(index, verb)(*numbers)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"].replace(" ", "-"))
def test_every_case_ends_as_in_kafka(case: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "index"
    if case["existing"] is not None:
        path.write_bytes(bytes.fromhex(case["existing"]))
    if "refused" in case:
        with pytest.raises(cw.ConfigError, match="max_index_size"):
            open_case(case, path)
        assert not path.exists()
        return
    index = open_case(case, path)
    for step in case["steps"]:
        verb, *numbers = step["call"]
        if verb == "reopen":
            index.close()
            index = open_case(case, path)
        elif "refused" in step:
            with pytest.raises(cw.ConfigError):
                do(index, verb, numbers)
        else:
            changed = do(index, verb, numbers)
            assert step.get("changed") in (None, changed)
        state = step["state"]
        assert index.entries == len(list(index)) == state["entries"]
        assert (path.stat().st_size if path.exists() else 0) == state["length"]
        if case["kind"] != "transaction":
            assert (index.max_entries, index.is_full, last(index)) == (
                state["max_entries"],
                state["is_full"],
                state["last"],
            )
    for target, *found in case["lookups"]:
        if case["kind"] == "transaction":
            aborted, complete = index.collect_aborted(target, target + 5)
            assert [len(aborted), complete] == found
        else:
            entry = index.lookup(target)
            assert found == (
                [entry.offset, entry.position] if case["kind"] == "offset" else [entry.timestamp, entry.offset]
            )
    index.close()
    assert (path.read_bytes().hex() if path.exists() else None) == case["closed"]


GOLDEN = sorted(path for path in (ROOT / "golden").glob("*/*/*index") if "-killed" not in str(path))


def test_kafkas_own_files_are_written_again_from_their_entries(tmp_path: Path) -> None:
    kinds = dict.fromkeys((".index", ".timeindex", ".txnindex"), 0)
    for original in GOLDEN:
        expected = original.read_bytes()
        copy = tmp_path / f"{len(list(tmp_path.iterdir()))}" / original.name
        copy.parent.mkdir()
        base = int(original.name.split(".")[0])
        if original.suffix == ".index":
            with cw.OffsetIndexWriter(copy) as offsets:
                for relative, position in struct.iter_unpack(">ii", expected):
                    offsets.append(base + relative, position)
        elif original.suffix == ".timeindex":
            with cw.TimeIndexWriter(copy) as times:
                for timestamp, relative in struct.iter_unpack(">qi", expected):
                    assert times.maybe_append(timestamp, base + relative, skip_full_check=True)
        else:
            with cw.TransactionIndexWriter(copy) as aborted:
                for version, producer, first, end, stable in struct.iter_unpack(">hqqqq", expected):
                    assert version == 0
                    aborted.append(producer_id=producer, first_offset=first, last_offset=end, last_stable_offset=stable)
        assert (copy.read_bytes() if copy.exists() else b"") == expected, original
        kinds[original.suffix] += len(expected) > 0
    assert kinds[".index"] > 100
    assert kinds[".timeindex"] > 100
    assert kinds[".txnindex"] >= 3


# any sequence of changes


class OffsetList:
    """A model of an offset index with `slots` slots, as a list of (offset, position)."""

    suffix, slot, key, form = ".index", 8, 0, ">ii"

    def __init__(self, base: int, size: int) -> None:
        self.base, self.size, self.entries = base, size, list[tuple[int, int]]()
        self.slots = size // self.slot

    def open(self, path: Path) -> Any:
        return cw.OffsetIndexWriter(path, max_index_size=self.size)

    def offset(self, up: int) -> int:
        return (self.entries[-1][self.key] if self.entries else self.base) + up

    def append(self, index: Any, up: int, _later: int, _skip: bool) -> None:
        entry = (self.offset(up), len(self.entries))
        allowed = len(self.entries) < self.slots and entry[0] >= self.base and (not self.entries or up > 0)
        with contextlib.nullcontext() if allowed else pytest.raises(cw.ConfigError):
            index.append(*entry)
        self.entries += [entry] * allowed

    def truncate_to(self, index: Any, up: int) -> None:
        offset = self.offset(up)
        index.truncate_to(offset)
        self.entries = [entry for entry in self.entries if entry[self.key] < offset]

    def resize(self, index: Any, size: int) -> None:
        slots = size // self.slot
        if slots < len(self.entries):
            with pytest.raises(cw.ConfigError, match="the index has"):
                index.resize(size)
        else:
            assert index.resize(size) is (slots != self.slots)
            self.slots = slots

    def trim(self, index: Any) -> None:
        assert index.trim() is (self.slots != len(self.entries))
        self.slots = len(self.entries)

    def reset(self, index: Any) -> None:
        index.reset()
        self.entries, self.slots = [], self.size // self.slot

    def flush(self, index: Any) -> None:
        index.flush()

    def file(self) -> bytes:
        packed = b"".join(struct.pack(self.form, *self.relative(entry)) for entry in self.entries)
        return packed.ljust(self.slots * self.slot, b"\0")

    def relative(self, entry: tuple[int, int]) -> tuple[int, int]:
        return entry[0] - self.base, entry[1]

    def lookup(self, target: int) -> tuple[int, int]:
        return next((entry for entry in reversed(self.entries) if entry[0] <= target), (self.base, 0))


class TimeList(OffsetList):
    """A model of a time index, as a list of (timestamp, offset)."""

    suffix, slot, key, form = ".timeindex", 12, 1, ">qi"

    def open(self, path: Path) -> Any:
        return cw.TimeIndexWriter(path, max_index_size=self.size)

    def append(self, index: Any, up: int, later: int, skip: bool) -> None:
        entry = ((self.entries[-1][0] if self.entries else -1) + later, self.offset(up))
        rises = later > 0
        room = len(self.entries) < self.slots - (not skip) or (skip and not rises)
        allowed = room and (not self.entries or min(up, later) >= 0) and (not rises or entry[1] >= self.base)
        with contextlib.nullcontext() if allowed else pytest.raises(cw.ConfigError):
            assert index.maybe_append(*entry, skip) is rises
        self.entries += [entry] * (allowed and rises)

    def relative(self, entry: tuple[int, int]) -> tuple[int, int]:
        return entry[0], entry[1] - self.base

    def lookup(self, target: int) -> tuple[int, int]:
        return next((entry for entry in reversed(self.entries) if entry[0] <= target), (-1, self.base))


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(-1, 4), st.integers(-1, 4), st.booleans()),
        st.tuples(st.just("append"), st.integers(1, 4), st.integers(1, 4), st.booleans()),
        st.tuples(st.just("truncate_to"), st.integers(-12, 3)),
        st.tuples(st.just("resize"), st.integers(0, 400)),
        st.tuples(st.sampled_from(["trim", "reset", "flush", "reopen"])),
    ),
    max_size=60,
)


@given(CHANGES, st.sampled_from([OffsetList, TimeList]), st.integers(12, 200), st.sampled_from([0, 500]))
def test_an_index_equals_a_list(
    tmp_path_factory: pytest.TempPathFactory, changes: list[Any], kind: type[OffsetList], size: int, base: int
) -> None:
    model = kind(base, size)
    path = tmp_path_factory.mktemp("list") / name(base, model.suffix)
    index = model.open(path)
    for verb, *numbers in changes:
        if verb == "reopen":
            index.close()
            index, model.slots = model.open(path), len(model.entries)
        else:
            getattr(model, verb)(index, *numbers)
        assert path.read_bytes() == model.file()
        assert (len(index), index.max_entries) == (len(model.entries), model.slots)
    for target in {0, base, *(entry[0] + above for entry in model.entries for above in (0, 1))}:
        entry = index.lookup(target)
        found = (entry.offset, entry.position) if kind is OffsetList else (entry.timestamp, entry.offset)
        assert found == model.lookup(target)
    # a reader of the open file finds the end, unless the only entry is all zeros
    with (cw.OffsetIndex if kind is OffsetList else cw.TimeIndex)(path) as beside:
        assert len(beside) == len(model.entries) or not any(path.read_bytes())
