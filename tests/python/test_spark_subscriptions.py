"""Which topics and partitions are read: `subscribe`, `subscribePattern` and `assign`."""

from __future__ import annotations

import shutil
from pathlib import Path

import corpus
import pytest
from spark_reading import CITIES, DATA, PARTS, expected, got, refuses, source


def test_subscribe_takes_a_list_of_topics() -> None:
    assert got(DATA, subscribe="cities") == expected(CITIES)
    assert got(DATA, subscribe=" rivers.compact , cities") == expected([*CITIES, PARTS["rivers.compact-0"]])


def test_a_subscribed_name_is_no_pattern() -> None:
    with refuses("CORDWOOD_NOT_FOUND"):
        source(DATA, subscribe="rivers-compact").schema()


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("citi.*", ["cities-0", "cities-1"]),
        (r"rivers\.compact|cities", ["cities-0", "cities-1", "rivers.compact-0"]),
        ("[a-z.]+", ["cities-0", "cities-1", "rivers.compact-0"]),
    ],
)
def test_subscribe_pattern_matches_whole_names(pattern: str, names: list[str]) -> None:
    assert got(DATA, subscribePattern=pattern) == expected([PARTS[name] for name in names])


def test_assign_takes_some_partitions() -> None:
    assert got(DATA, assign={"cities": [1], "rivers.compact": [0]}) == expected(
        [PARTS["cities-1"], PARTS["rivers.compact-0"]]
    )


@pytest.mark.parametrize("topic", ["a-b", "a-1-2", "a.b_c-d", "-a", "0", "a-0-0", "__x", "a" * 200])
def test_topics_with_dots_dashes_and_digits_keep_their_names(tmp_path: Path, topic: str) -> None:
    part = corpus.partition("15-one-record")
    for number in (0, 12):
        shutil.copytree(part.path, tmp_path / f"{topic}-{number}")
    assert got(tmp_path) == [(topic, 0, 0), (topic, 12, 0)]
    assert got(tmp_path, subscribe=topic) == [(topic, 0, 0), (topic, 12, 0)]
    assert got(tmp_path, assign={topic: [12]}) == [(topic, 12, 0)]


@pytest.mark.parametrize("pattern", ["(", "*", "[a-"])
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    with refuses("CORDWOOD_BAD_OPTION", "subscribePattern"):
        source(DATA, subscribePattern=pattern).schema()


@pytest.mark.parametrize("assigned", ["cities", '{"cities":"0"}', '{"cities":[-1]}', '{"cities":["a"]}', "[]", "{}"])
def test_an_assignment_that_is_none_is_refused(assigned: str) -> None:
    with refuses("CORDWOOD_BAD_OPTION", "assign"):
        source(DATA, assign=assigned).schema()
