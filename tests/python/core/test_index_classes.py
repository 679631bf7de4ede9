"""`OffsetIndex`, `TimeIndex` and `TransactionIndex` on generated files, with worked examples."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path
from typing import Any

import pytest
from batches import Rec, batch, name, write_partition
from hypothesis import given
from hypothesis import strategies as st

import cordwood as cw

METHODS = (None, "binary", "warm", "learned")


def offset_index(folder: Path, entries: list[tuple[int, int]], base: int = 0, tail: bytes = b"") -> Any:
    """Entries of (absolute offset, position)."""
    path = folder / name(base, ".index")
    path.write_bytes(b"".join(struct.pack(">ii", o - base, p) for o, p in entries) + tail)
    return cw.OffsetIndex(path)


def time_index(folder: Path, entries: list[tuple[int, int]], base: int = 0, tail: bytes = b"") -> Any:
    """Entries of (timestamp, absolute offset)."""
    path = folder / name(base, ".timeindex")
    path.write_bytes(b"".join(struct.pack(">qi", t, o - base) for t, o in entries) + tail)
    return cw.TimeIndex(path)


def place(entry: Any) -> tuple[int, int]:
    return entry.offset, entry.position


def moment(entry: Any) -> tuple[int, int]:
    return entry.timestamp, entry.offset


def search(keys: list[int], target: int, warm: int | None) -> tuple[tuple[int, int], list[int]]:
    """Kafka's search, transcribed: the slots below and above, and every slot compared, in order."""
    n = len(keys)
    if n == 0:
        return (-1, -1), []
    probed: list[int] = []

    def key(slot: int) -> int:
        probed.append(slot)
        return keys[slot]

    def bisect(low: int, high: int) -> tuple[int, int]:
        while low < high:
            mid = (low + high + 1) // 2
            found = key(mid)
            if found > target:
                high = mid - 1
            elif found < target:
                low = mid
            else:
                return mid, mid
        return low, -1 if low == n - 1 else low + 1

    hot = n - 1 if warm is None else max(0, n - 1 - warm)
    if warm is not None and key(hot) < target:
        return bisect(hot, n - 1), probed
    if key(0) > target:
        return (-1, 0), probed
    return bisect(0, hot), probed


def test_the_classic_lookup_finds_the_largest_entry_not_above(tmp_path: Path) -> None:
    index = offset_index(tmp_path, [(6, 156), (14, 459), (22, 656), (26, 838), (31, 1050)])
    for method in METHODS:
        assert place(index.lookup(23, method=method)) == (22, 656)
        assert place(index.lookup(22, method=method)) == (22, 656)
        assert place(index.lookup(5, method=method)) == (0, 0)
        assert place(index.lookup(6, method=method)) == (6, 156)
        assert place(index.lookup(10**12, method=method)) == (31, 1050)


def test_a_lookup_between_two_entries(tmp_path: Path) -> None:
    index = offset_index(tmp_path, [(100, 4000), (110, 8200), (120, 13000), (130, 18000)])
    assert {place(index.lookup(115, method=method)) for method in METHODS} == {(110, 8200)}


def test_entries_are_relative_to_the_base_offset(tmp_path: Path) -> None:
    """With base 32, the file has 3 for offset 35."""
    index = offset_index(tmp_path, [(35, 700)], base=32)
    assert struct.unpack(">ii", Path(index.path).read_bytes()) == (3, 700)
    assert place(index.entry(0)) == (35, 700)
    assert place(index.lookup(34)) == (32, 0)
    other = tmp_path / "copy.index"
    other.write_bytes(Path(index.path).read_bytes())
    assert place(cw.OffsetIndex(other, base_offset=1000).entry(0)) == (1003, 700)


@pytest.mark.parametrize(("target", "base", "relative"), [(268, 251, 17), (230, 217, 13)])
def test_the_segment_of_an_offset_is_the_floor(tmp_path: Path, target: int, base: int, relative: int) -> None:
    bases = [0, 217, 251, 300]
    ends = [217, 251, 300, 310]
    segments = [
        (first, [batch(first, [Rec(value=b"v")] * (last - first))]) for first, last in zip(bases, ends, strict=True)
    ]
    log = cw.Log(write_partition(tmp_path / "made-0", segments))
    found = log.segments.floor(target)
    assert (found.base_offset, target - found.base_offset) == (base, relative)
    assert log.locate(target).segment_base_offset == base


def test_a_time_leads_to_an_offset_and_that_to_a_position(tmp_path: Path) -> None:
    times = time_index(tmp_path, [(1526384718273, 14), (1526384718283, 28), (1526384718300, 31)])
    places = offset_index(tmp_path, [(6, 156), (14, 459), (22, 656), (26, 838), (31, 1050)])
    for method in METHODS:
        found = times.lookup(1526384718288, method=method)
        assert moment(found) == (1526384718283, 28)
        assert place(places.lookup(found.offset, method=method)) == (26, 838)
        assert moment(times.lookup(1526384718272, method=method)) == (-1, 0)
        assert moment(times.lookup(-1, method=method)) == (-1, 0)


@pytest.mark.parametrize(
    ("size", "offset_size", "time_size"), [(67, 64, 60), (1_234_567, 1_234_560, 1_234_560), (0, 0, 0)]
)
def test_sizes_are_rounded_down_to_whole_entries(tmp_path: Path, size: int, offset_size: int, time_size: int) -> None:
    (tmp_path / name(0, ".index")).write_bytes(bytes(size))
    (tmp_path / name(0, ".timeindex")).write_bytes(bytes(size))
    for index, wanted in (
        (cw.OffsetIndex(tmp_path / name(0, ".index")), offset_size),
        (cw.TimeIndex(tmp_path / name(0, ".timeindex")), time_size),
    ):
        assert index.max_index_size == wanted
        assert index.max_entries * index.entry_size == wanted
        assert (index.entries, len(index), list(index)) == (0, 0, [])


def test_a_partial_entry_at_the_end_is_ignored(tmp_path: Path) -> None:
    index = offset_index(tmp_path, [(n, n * 100) for n in range(1, 9)], tail=b"\0\0\1")
    assert (index.entries, index.max_entries, index.is_full) == (8, 8, True)
    with pytest.raises(cw.CorruptLogError):
        index.sanity_check()


@pytest.mark.parametrize(
    ("pages", "binary", "warm"), [(13, [0, 6, 9, 11, 12], [10, 11, 12]), (14, [0, 7, 10, 12, 13], [11, 12, 13])]
)
def test_pages_touched_to_find_the_newest_entry(tmp_path: Path, pages: int, binary: list[int], warm: list[int]) -> None:
    count = pages * 4096 // 8
    index = offset_index(tmp_path, [(n + 1, (n + 1) * 50) for n in range(count)])
    assert list(index.trace(count, method="binary")) == binary
    assert list(index.trace(count, method="warm")) == warm
    # the last entry is in memory
    assert list(index.trace(count, method="learned")) == []


def test_a_learned_look_up_of_any_entry_reads_one_page_or_pages_of_the_warm_section(tmp_path: Path) -> None:
    count = 13 * 4096 // 8
    first_warm = count - 1 - 8192 // 8
    # from 1 to 2,000 offsets between two entries
    offsets = list(itertools.accumulate(1 + (n // 900 * 331) % 2000 for n in range(count)))
    index = offset_index(tmp_path, [(offset, 50 * n) for n, offset in enumerate(offsets)])
    for offset in offsets[: count // 256 + 1]:
        assert index.lookup(offset).offset == offset
    for slot in range(0, count - 1, 7):
        pages = list(index.trace(offsets[slot]))
        if slot < first_warm:
            assert pages == [slot // 512]
        else:
            assert slot // 512 in pages
            assert min(pages) >= first_warm // 512


@pytest.mark.parametrize("count", [1, 2, 683, 684, 1025, 1026, 5000])
def test_pages_touched_are_those_of_the_slots_compared(tmp_path: Path, count: int) -> None:
    """Each page once, in the order of first touch."""
    places = offset_index(tmp_path, [(3 * n + 3, 50 * n) for n in range(count)])
    times = time_index(tmp_path, [(10 * n + 10, n) for n in range(count)])
    for slot in sorted({0, 1, count // 3, count - 600, count - 2, count - 1} & set(range(count))):
        for shift in (-1, 0, 1):
            for method, windows in (("binary", (None, None)), ("warm", (1024, 682))):
                target = 3 * slot + 3 + shift
                probed = search([3 * n + 3 for n in range(count)], target, windows[0])[1]
                assert list(places.trace(target, method=method)) == list(dict.fromkeys(s * 8 // 4096 for s in probed))
                target = 10 * slot + 10 + shift
                probed = search([10 * n + 10 for n in range(count)], target, windows[1])[1]
                first_bytes = [s * 12 // 4096 for s in probed]
                traced = list(dict.fromkeys(times.trace(target, method=method)))
                assert [page for page in traced if page in first_bytes] == list(dict.fromkeys(first_bytes))


@pytest.mark.parametrize(
    ("keys", "target", "wanted"),
    [
        ([], 5, (-1, -1)),
        ([10, 20, 30], 9, (-1, 0)),
        ([10, 20, 30], 15, (0, 1)),
        ([10, 20, 30], 20, (1, 1)),
        ([10, 20, 30], 30, (2, 2)),
        ([10, 20, 30], 31, (2, -1)),
        ([10, 20, 30], 10, (0, 1)),
        ([10], 10, (0, -1)),
        ([10], 11, (0, -1)),
        ([10], 9, (-1, 0)),
    ],
)
def test_the_slots_around_a_target(tmp_path: Path, keys: list[int], target: int, wanted: tuple[int, int]) -> None:
    """A target equal to the first key has the next slot above it: the first slot is never a middle."""
    places = offset_index(tmp_path, [(key, n) for n, key in enumerate(keys)])
    times = time_index(tmp_path, [(key, n) for n, key in enumerate(keys)])
    for method in METHODS:
        assert tuple(places.slot_range(target, method=method)) == wanted
        assert tuple(times.slot_range(target, method=method)) == wanted


@given(
    steps=st.lists(st.integers(1, 9), min_size=0, max_size=40),
    repeat=st.sampled_from([1, 1, 40, 60]),
    targets=st.lists(st.integers(-5, 12_000), min_size=1, max_size=30),
)
def test_every_search_method_equals_a_linear_search(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], repeat: int, targets: list[int]
) -> None:
    keys, key = [], 0
    for step in steps * repeat:
        key += step
        keys.append(key)
    folder = tmp_path_factory.mktemp("index")
    places = offset_index(folder, [(k, n) for n, k in enumerate(keys)])
    times = time_index(folder, [(k, n) for n, k in enumerate(keys)])
    for target in [*targets, -(2**63), 2**63 - 1, *keys[:2], *keys[-2:]]:
        below = sum(k <= target for k in keys) - 1
        for method in METHODS:
            assert place(places.lookup(target, method=method)) == ((keys[below], below) if below >= 0 else (0, 0))
            assert moment(times.lookup(target, method=method)) == ((keys[below], below) if below >= 0 else (-1, 0))
            around = search(keys, target, None)[0]
            assert tuple(places.slot_range(target, method=method)) == around
            assert tuple(times.slot_range(target, method=method)) == around


def test_the_upper_bound_of_a_fetch(tmp_path: Path) -> None:
    """The first entry whose position is not below the fetch's end; for the very first position, the entry after it."""
    entries = [(45, 0), (51, 10), (60, 23), (77, 37)]
    index = offset_index(tmp_path, entries, base=45)
    for position, size, wanted in [
        (0, 5, 1),
        (0, 10, 1),
        (0, 22, 2),
        (0, 23, 2),
        (10, 24, 3),
        (0, 200, None),
        (37, 1, None),
        (0, 0, 1),
    ]:
        found = index.fetch_upper_bound(position, size)
        assert (found and place(found)) == (None if wanted is None else entries[wanted]), (position, size)


def test_zeros_of_a_preallocated_file_are_not_entries(tmp_path: Path) -> None:
    places = offset_index(tmp_path, [(105, 900), (110, 1800)], base=100, tail=bytes(8 * 500))
    times = time_index(tmp_path, [(7000, 105), (7005, 110)], base=100, tail=bytes(12 * 500))
    assert (places.entries, places.max_entries, places.is_full) == (2, 502, False)
    assert (times.entries, times.max_entries, times.is_full) == (2, 502, False)
    for method in METHODS:
        assert place(places.lookup(10**9, method=method)) == (110, 1800)
        assert place(places.lookup(104, method=method)) == (100, 0)
        assert moment(times.lookup(2**62, method=method)) == (7005, 110)
        assert moment(times.lookup(0, method=method)) == (-1, 100)
    assert place(places.last_entry) == (110, 1800)


def test_a_time_index_is_full_one_slot_early(tmp_path: Path) -> None:
    one_free = time_index(tmp_path, [(5, 1), (6, 2)], tail=bytes(12))
    assert (one_free.max_entries, one_free.is_full) == (3, True)
    two_free = time_index(tmp_path, [(5, 1), (6, 2)], tail=bytes(24))
    assert (two_free.max_entries, two_free.is_full) == (4, False)


def test_attributes_of_an_index(tmp_path: Path) -> None:
    index = offset_index(tmp_path, [(51, 0), (52, 4096)], base=45)
    assert Path(index.path).read_bytes().hex() == "00000006000000000000000700001000"
    assert (index.base_offset, index.entry_size, index.entries, len(index)) == (45, 8, 2, 2)
    assert [place(e) for e in index] == [(51, 0), (52, 4096)]
    assert place(index.last_entry) == (52, 4096)
    assert index.sanity_check() is None
    times = time_index(tmp_path, [(1000, 51)], base=45)
    assert Path(times.path).read_bytes().hex() == "00000000000003e800000006"
    assert (times.base_offset, times.entry_size, moment(times.last_entry)) == (45, 12, (1000, 51))
    assert times.sanity_check() is None
    with pytest.raises(AttributeError):
        index.base_offset = 3


def test_an_empty_index_points_at_its_base(tmp_path: Path) -> None:
    places, times = offset_index(tmp_path, [], base=9), time_index(tmp_path, [], base=9)
    assert place(places.last_entry) == place(places.lookup(50)) == (9, 0)
    assert moment(times.last_entry) == moment(times.lookup(50)) == (-1, 9)
    assert places.fetch_upper_bound(0, 10) is None
    assert list(places.trace(5, method="warm")) == []
    places.sanity_check()
    times.sanity_check()


def test_a_last_entry_below_the_base_fails_the_sanity_check(tmp_path: Path) -> None:
    (tmp_path / name(100, ".index")).write_bytes(struct.pack(">iiii", 4, 10, -3, 20))
    with pytest.raises(cw.CorruptLogError):
        cw.OffsetIndex(tmp_path / name(100, ".index")).sanity_check()
    backwards = time_index(tmp_path, [(2000, 3), (1000, 4)])
    with pytest.raises(cw.CorruptLogError):
        backwards.sanity_check()


def test_entries_of_a_transaction_index(tmp_path: Path) -> None:
    path = tmp_path / name(0, ".txnindex")
    entries = [(0, 0, 10, 11), (1, 5, 15, 13), (2, 18, 35, 25), (3, 32, 50, 40)]
    raw = b"".join(struct.pack(">hqqqq", 0, *entry) for entry in entries)
    path.write_bytes(raw)
    index = cw.TransactionIndex(path)
    got = [(e.producer_id, e.first_offset, e.last_offset, e.last_stable_offset) for e in index]
    assert got == entries
    assert (index.entries, len(index), index.entry_size, index.base_offset) == (4, 4, 34, 0)
    assert index.entry(2).last_offset == 35
    assert index.last_entry.producer_id == 3
    assert index.sanity_check() is None
    path.write_bytes(raw + b"\0" * 13)
    assert len(cw.TransactionIndex(path)) == 4
    late = tmp_path / name(100, ".txnindex")
    late.write_bytes(raw)
    with pytest.raises(cw.CorruptLogError):
        cw.TransactionIndex(late).sanity_check()


@pytest.mark.parametrize("slot", [3, 100, -10, 2**40])
def test_a_missing_entry_is_an_index_error(tmp_path: Path, slot: int) -> None:
    for index in (offset_index(tmp_path, [(1, 1), (2, 2), (3, 3)]), time_index(tmp_path, [(1, 1), (2, 2), (3, 3)])):
        with pytest.raises((IndexError, ValueError, OverflowError)):
            index.entry(slot)


def test_an_entry_before_the_first_is_the_same_error_as_one_after_the_last(tmp_path: Path) -> None:
    for index in (offset_index(tmp_path, [(1, 1), (2, 2)]), time_index(tmp_path, [(1, 1), (2, 2)])):
        for slot in (2, 2**40, -1, -2, -(2**40)):
            with pytest.raises(cw.ConfigError):
                index.entry(slot)


def test_a_closed_index_says_that_it_is_closed(tmp_path: Path) -> None:
    for index in (offset_index(tmp_path, [(1, 1)]), time_index(tmp_path, [(1, 1)])):
        index.close()
        index.close()
        with pytest.raises((cw.CordwoodError, ValueError)):
            index.lookup(1)
        with pytest.raises((cw.CordwoodError, ValueError)):
            index.entry(0)


def test_a_closed_index_does_not_close_the_log(tmp_path: Path) -> None:
    log = cw.Log(write_partition(tmp_path / "made-0", [(0, [batch(0, [Rec(value=b"v")])])]))
    (tmp_path / "made-0" / name(0, ".index")).write_bytes(struct.pack(">ii", 0, 0))
    index = cw.OffsetIndex(tmp_path / "made-0" / name(0, ".index"))
    index.close()
    assert log.locate(0).position == 0


@pytest.mark.parametrize("bad", ["", "Binary", "quick", 3])
def test_an_unknown_search_method_is_an_error_that_names_it(tmp_path: Path, bad: Any) -> None:
    index = offset_index(tmp_path, [(1, 1)])
    for call in (index.lookup, index.slot_range, index.trace):
        with pytest.raises((cw.ConfigError, TypeError, ValueError)):
            call(1, method=bad)
