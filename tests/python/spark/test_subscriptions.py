"""Selection of topics and partitions: `subscribe`, `subscribePattern` and `assign`."""

from __future__ import annotations

import shutil
from pathlib import Path

import corpus
import pytest

from spark.reading import CITIES, DATA, PARTS, expected, got, refuses, source


def test_subscribe_accepts_a_list_of_topics() -> None:
    assert got(DATA, subscribe="cities") == expected(CITIES)
    assert got(DATA, subscribe=" rivers.compact , cities") == expected([*CITIES, PARTS["rivers.compact-0"]])


def test_a_subscribed_name_is_not_a_pattern() -> None:
    with refuses("CORDWOOD_NOT_FOUND"):
        source(DATA, subscribe="rivers-compact").schema()


TOPICS = ["cities", "rivers.compact", "orders", "orders.eu", "orders-2", "ORDERS", "a1_b", "x"]


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with one record in each of several topics, including internal ones."""
    folder = tmp_path_factory.mktemp("topics")
    for topic in [*TOPICS, *INTERNAL]:
        shutil.copytree(corpus.partition("15-one-record").path, folder / f"{topic}-0")
    return folder


INTERNAL = ["__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"]

PATTERNS = [
    ("citi.*", ["cities"]),
    (r"rivers\.compact|cities", ["cities", "rivers.compact"]),
    ("rders", ["orders", "orders.eu", "orders-2"]),
    ("^orders$", ["orders"]),
    (" orders$ ", ["orders"]),
    (r"orders[.-]", ["orders.eu", "orders-2"]),
    (r"\Qs.e\E", ["orders.eu"]),
    (r"\d", ["orders-2", "a1_b"]),
    ("(?i)^orders$", ["orders", "ORDERS"]),
    ("^[^a-z]", ["ORDERS"]),
    (r"^\w+$", ["cities", "orders", "ORDERS", "a1_b", "x"]),
    ("^(?!orders|cities)[a-z]", ["rivers.compact", "a1_b", "x"]),
    ("(?<=s)[.-]c", ["rivers.compact"]),
    (r"\z", TOPICS),
    ("o?+o", []),
    ("^.{1,4}$", ["a1_b", "x"]),
]


@pytest.mark.parametrize(("pattern", "wanted"), PATTERNS)
def test_subscribe_pattern_matches_anywhere_in_a_name(topics: Path, pattern: str, wanted: list[str]) -> None:
    """As in Spark's Kafka source; `test_patterns.py` compares with Java."""
    if wanted:
        assert {row[0] for row in got(topics, subscribePattern=pattern)} == set(wanted)
    else:
        with refuses("CORDWOOD_NOT_FOUND", "a topic like"):
            got(topics, subscribePattern=pattern)


@pytest.mark.parametrize("name", ["excludeInternalTopics", "kafka.exclude.internal.topics"])
def test_internal_topics_are_read_if_they_are_named_or_requested(topics: Path, name: str) -> None:
    def read(**options: object) -> set[str]:
        return {row[0] for row in got(topics, **options)}

    assert read() == {*TOPICS, *INTERNAL}
    assert read(**{name: True}) == set(TOPICS)
    assert read(subscribePattern=".*") == read(subscribePattern=".*", **{name: True}) == set(TOPICS)
    assert read(subscribePattern=".*", **{name: False}) == {*TOPICS, *INTERNAL}
    assert read(subscribePattern="offsets|x", **{name: False}) == {"__consumer_offsets", "x"}
    assert read(subscribe="__consumer_offsets,x", **{name: True}) == {"__consumer_offsets", "x"}
    assert read(assign={"__consumer_offsets": [0]}) == {"__consumer_offsets"}
    with refuses("CORDWOOD_NOT_FOUND", "a topic like ^__", "excludeInternalTopics=false"):
        read(subscribePattern="^__")


def test_the_two_names_of_an_option_must_agree(topics: Path) -> None:
    with refuses("CORDWOOD_BAD_OPTION", "xclude"):
        got(topics, excludeInternalTopics=True, **{"kafka.exclude.internal.topics": False})


def test_assign_selects_partitions() -> None:
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


NO_PATTERNS = ["(", "*", "[a-", "", "  ", "a**", "a{2", "(?<=a+)b", "[b-a]"]
OTHERWISE_IN_JAVA = [
    r"\p{Alpha}", "[a[bc]]", "[a-z&&[^b]]", "[]a]", "a{,3}", "(?<name>a)", r"(a)\1", "a(?i)b", "(?x) a", r"\R", r"\h",
    r"\x41", r"[\w-.]", "[a-c-e]", r"\ä", r"[\Qa\E]",
]  # fmt: skip
OF_OTHER_LANGUAGES = ["(?P<name>a)", "(?#a)", "(?i:a)b(?-i:c)", "[a--b]", r"\Aa\k", r"(?(1)a|b)"]


@pytest.mark.parametrize("pattern", [*NO_PATTERNS, *OTHERWISE_IN_JAVA, *OF_OTHER_LANGUAGES])
def test_an_invalid_pattern_or_one_with_another_meaning_in_java_is_refused(pattern: str) -> None:
    with refuses("CORDWOOD_BAD_OPTION", "subscribePattern: expected a regular expression with the same meaning"):
        source(DATA, subscribePattern=pattern).schema()


@pytest.mark.parametrize("assigned", ["cities", '{"cities":"0"}', '{"cities":[-1]}', '{"cities":["a"]}', "[]", "{}"])
def test_an_invalid_assignment_is_refused(assigned: str) -> None:
    with refuses("CORDWOOD_BAD_OPTION", "assign"):
        source(DATA, assign=assigned).schema()
