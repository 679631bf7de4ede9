"""Ranges by offset. The oracle cuts the expected records itself."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import corpus
import pytest
from corpus import Partition
from hypothesis import given
from hypothesis import strategies as st

from cordwood.spark import errors
from spark.reading import CITIES, DATA, PARTS, expected, got, offsets, plan, refuses, source, struct


def end_of(part: Partition) -> int:
    return int(part.opened["logEndOffset"])


RANGED = [PARTS["cities-0"], PARTS["cities-1"], PARTS["rivers.compact-0"]]
SUBSCRIBED = {"subscribe": "cities,rivers.compact"}


def by_partition(found: dict[tuple[str, int], int]) -> dict[str, dict[str, int]]:
    out: dict[str, dict[str, int]] = {}
    for (topic, number), value in found.items():
        out.setdefault(topic, {})[str(number)] = value
    return out


@st.composite
def offset_ranges(draw: st.DrawFn) -> tuple[dict[str, Any], dict[tuple[str, int], tuple[int, int]]]:
    """Options with starts and ends for each partition, and the expected bounds."""
    starts, ends, bounds = {}, {}, {}
    for part in RANGED:
        name = (part.topic, part.number)
        low, high = part.log_start, end_of(part)
        start = draw(st.just(-2) | st.integers(low, high))
        end = draw(st.just(-1) | st.integers(max(low, start), high))
        starts[name], ends[name] = start, end
        bounds[name] = (low if start == -2 else start, high if end == -1 else end)
    options: dict[str, Any] = {}
    if draw(st.booleans()):
        options["startingOffsets"] = by_partition(starts)
    else:
        bounds = {name: (0, end) for name, (_, end) in bounds.items()}
    if draw(st.booleans()):
        options["endingOffsets"] = by_partition(ends)
    else:
        bounds = {name: (start, 1 << 62) for name, (start, _) in bounds.items()}
    options |= draw(
        st.sampled_from([{}, {"minPartitions": 7}, {"maxPartitionBytes": 2000}, {"maxRecordsPerPartition": 9}])
    )
    return options, bounds


@given(offset_ranges())
def test_starts_and_ends_by_offset_cut_each_partition_there(
    chosen: tuple[dict[str, Any], dict[tuple[str, int], tuple[int, int]]],
) -> None:
    """-2 is the earliest and -1 the latest; an end is exclusive; a start that is the end is an empty range."""
    options, bounds = chosen
    assert got(DATA, **SUBSCRIBED, **options) == expected(RANGED, bounds)


def test_offsets_in_a_gap_are_valid_bounds() -> None:
    """Compaction leaves gaps, in which a range may begin and end."""
    part = corpus.partition("18-leaps")
    held = [r.offset for r in corpus.visible(part)]
    hole = next(left + 1 for left, right in pairwise(held) if right > left + 1000)
    offset = {"leaps": {"3": hole}}
    assert offsets(part.path, startingOffsets=offset) == [o for o in held if o >= hole]
    assert offsets(part.path, endingOffsets=offset) == [o for o in held if o < hole]


@pytest.mark.parametrize("word", ["earliest", "EARLIEST", " earliest "])
def test_earliest_and_latest_are_words_in_any_case(word: str) -> None:
    assert got(DATA, startingOffsets=word, endingOffsets="Latest", subscribe="cities") == expected(CITIES)


OUT_OF_RANGE = [
    ("a start below the log start", {"startingOffsets": {"cities": {"0": 0, "1": 30}}}, (31, 1 << 62)),
    ("a start above the log end", {"startingOffsets": {"cities": {"0": 0, "1": 151}}}, (150, 1 << 62)),
    ("an end above the log end", {"endingOffsets": {"cities": {"0": -1, "1": 151}}}, (31, 150)),
    ("an end below the log start", {"endingOffsets": {"cities": {"0": -1, "1": 3}}}, (31, 31)),
]


@pytest.mark.parametrize("options", [o[1] for o in OUT_OF_RANGE[:3]], ids=[o[0] for o in OUT_OF_RANGE[:3]])
def test_offsets_outside_the_log_are_data_loss(options: dict[str, Any]) -> None:
    with refuses("CORDWOOD_OFFSET_OUT_OF_RANGE", "cities-1") as raised:
        plan(DATA, subscribe="cities", **options)
    told = errors.parse(raised.value)
    assert (told.topic, told.partition) == ("cities", 1)


@pytest.mark.parametrize(("options", "left"), [o[1:] for o in OUT_OF_RANGE], ids=[o[0] for o in OUT_OF_RANGE])
def test_without_fail_on_data_loss_offsets_are_clipped_with_a_warning(
    options: dict[str, Any], left: tuple[int, int], said: Callable[[], list[str]]
) -> None:
    wanted = expected(CITIES, {("cities", 1): left})
    assert got(DATA, subscribe="cities", failOnDataLoss=False, **options) == wanted
    assert [text for text in said() if "cities-1" in text]


@pytest.mark.parametrize("option", ["startingOffsets", "startingOffsetsByTimestamp"])
def test_a_batch_query_needs_a_start_for_each_partition(option: str) -> None:
    """A stream does not: after a restart there may be new partitions."""
    with refuses("CORDWOOD_BAD_OPTION", option, "cities-1"):
        plan(DATA, subscribe="cities", schema=struct("offset"), **{option: {"cities": {"0": 5}}})


@pytest.mark.parametrize(
    "options",
    [{"startingOffsets": "latest"}, {"startingOffsets": {"cities": {"0": -1, "1": -2}}}],
    ids=["word", "number"],
)
def test_a_batch_query_cannot_start_at_the_latest_offset(options: dict[str, Any]) -> None:
    """A stream can; at `.load()` it is not known yet whether it will be a stream."""
    with refuses("CORDWOOD_BAD_OPTION", "startingOffsets"):
        plan(DATA, subscribe="cities", schema=struct("offset"), **options)


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": {"cities": {"0": 1, "1": 40, "2": 3}}},
        {"endingOffsets": {"cities": {"0": 1, "1": 40}, "towns": {"0": 3}}},
    ],
)
def test_offsets_of_unsubscribed_partitions_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(Exception, match=r"^\[CORDWOOD_(BAD_OPTION|NOT_FOUND)\]"):
        source(DATA, subscribe="cities", **options).schema()
