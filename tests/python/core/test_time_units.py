"""A time in seconds, microseconds or nanoseconds is never taken as one in milliseconds, unless it says so."""

from __future__ import annotations

import pickle
from typing import Any

import corpus
import numpy as np
import pytest
from scripts import Command

import cordwood as cw
from cordwood.times import TimeFormError, parse

PLAIN = corpus.partition("01-plain").path
MS = 1_700_000_000_250
OTHERS = [(MS // 1000, "seconds", "s"), (MS * 1000, "microseconds", "us"), (MS * 1_000_000, "nanoseconds", "ns")]


@pytest.mark.parametrize(("number", "unit", "suffix"), OTHERS)
def test_a_number_in_another_unit_is_an_error_that_names_it(number: int, unit: str, suffix: str) -> None:
    log = cw.Log(PLAIN)
    calls: list[Any] = [
        lambda given: log.scan(start_time=given),
        lambda given: log.scan(end_time=given),
        lambda given: log.records(start_time=given),
        lambda given: log.batches(end_time=given),
        lambda given: log.plan(1000, start_time=given),
        log.offset_for_time,
        lambda given: cw.LogDir(corpus.GOLDEN / "16-data-dir").scan(start_time=given),
    ]
    for call in calls:
        with pytest.raises(cw.ConfigError, match=f"in {unit}"):
            call(number)
        with pytest.raises(cw.ConfigError, match=f"in {unit} it is {number}{suffix}"):
            call(str(number))
        call(f"{number}{suffix}")
        call(f"{number}ms")
    many: list[Any] = [[MS, number], np.array([MS, number]), (MS, np.int64(number))]
    for targets in many:
        with pytest.raises(cw.ConfigError, match=rf"timestamps\[1\].*in {unit}"):
            log.offsets_for_times(targets)
    expected = MS if suffix != "s" else MS // 1000 * 1000
    assert parse(f"{number}{suffix}") == expected
    assert parse(f"{number}ms") == number
    # a scan with such a time is made again in another process
    scan = log.scan(end_time=f"{number}ms")
    assert repr(pickle.loads(pickle.dumps(scan))) == repr(scan)


def test_times_in_ms_and_numbers_of_no_time_are_taken_as_they_are() -> None:
    log = cw.Log(PLAIN)
    for number in (0, 1, 1_000_000, MS, 253_402_300_799_999, 2**63 - 1):
        log.scan(start_time=number)
        log.offset_for_time(number)
        assert parse(str(number)) == number
    assert log.offsets_for_times([-1, 0, MS, None]).num_rows == 4
    stamps = np.array([MS * 1000], dtype="datetime64[us]")
    with pytest.raises(cw.ConfigError, match="time zone"):
        log.offsets_for_times(stamps)


@pytest.mark.parametrize("number", [*(number for number, _, _ in OTHERS), 0, -1, -MS * 1000, MS, 2**63 - 1, -(2**63)])
def test_an_index_is_searched_for_any_number(number: int) -> None:
    # the look-ups of files are Kafka's, which know no units
    with cw.TimeIndex(PLAIN / f"{0:020d}.timeindex") as index:
        entries = list(index)
        below = [n for n, entry in enumerate(entries) if entry.timestamp <= number]
        above = [n for n, entry in enumerate(entries) if entry.timestamp >= number]
        found = index.lookup(number)
        if below:
            assert found == entries[below[-1]]
        else:
            assert (found.timestamp, found.offset) == (-1, index.base_offset)
        if number != entries[0].timestamp:
            assert index.slot_range(number) == (below[-1] if below else -1, above[0] if above else -1)
        pages = -(-len(entries) * index.entry_size // 4096)
        assert set(index.trace(number)) <= set(range(pages))


def test_the_target_of_a_trace_has_a_unit(command: Command) -> None:
    index = PLAIN / f"{0:020d}.timeindex"
    number, unit, suffix = OTHERS[0]
    code, out, error = command("trace", index, number)
    assert (code, out) == (2, "")
    assert f"TARGET: expected milliseconds since the epoch, or a unit: in {unit} it is {number}{suffix}" in error
    for target in (f"{number}{suffix}", f"{number}ms", MS):
        assert command("trace", index, target)[0] == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1s", 1000), ("1500us", 2), ("1500000ns", 2), ("0ms", 0), ("1700000012s", 1_700_000_012_000)],
)
def test_a_text_with_a_unit_is_since_the_epoch(text: str, expected: int) -> None:
    assert parse(text) == expected


def test_a_unit_beyond_64_bits_is_refused() -> None:
    for text in ("9999999999999999999s", "1.5s", "-5s5", "5 s", "5h"):
        with pytest.raises(TimeFormError):
            parse(text)


@pytest.mark.parametrize(("number", "unit", "suffix"), OTHERS)
def test_the_command_line_names_the_unit(command: Command, number: int, unit: str, suffix: str) -> None:
    for words in (
        ("cat", PLAIN, "--since"),
        ("cat", PLAIN, "--until"),
        ("count", PLAIN, "--since"),
        ("find", PLAIN, "--time"),
        ("copy", PLAIN, "never-0", "--since"),
    ):
        code, out, error = command(*words, number)
        assert (code, out) == (2, ""), words
        assert (
            f"{words[-1]}: expected milliseconds since the epoch, or a unit: in {unit} it is {number}{suffix}" in error
        )
    assert command("find", PLAIN, "--time", f"{number}{suffix}")[0] == 0
