"""Patterns for topics: they match the same names as in Java, and patterns that Java refuses are refused."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from itertools import product
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import functions as f

from cordwood._core import _Query, _SourceOptions
from cordwood.spark import errors
from spark.test_subscriptions import PATTERNS, TOPICS

pytestmark = pytest.mark.spark

# parts of generated patterns; many patterns are refused here, in Java or in both
PARTS = [
    *"abz019_-.Xx", "^", "$", "|", "(", ")", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i)", "(?i:", ".*", ".+?",
    "*", "+", "?", "{2}", "{1,}", "{0,2}", "{,2}", "++", "*?", "[ab]", "[^ab]", "[a-z]", "[-x]", "[x-]", "[a-c-e]",
    r"[\w.]", r"[\d-]", r"[\w-.]", "[a&&b]", "[a&b]", "[a[b]]", "[]a]", "[^-_]", "[.-9]", r"\d", r"\D", r"\w", r"\W",
    r"\s", r"\S", r"\b", r"\B", r"\A", r"\Z", r"\z", r"\.", r"\-", r"\_", r"\Qa.b\E", r"\Q.\E", r"\Q", r"\E", r"\1",
    r"\p{Alpha}", "(?<n>", "}", "]", "{", " ", "#", "&&", r"\h", r"\x61", r"\t",
]  # fmt: skip

NAMES = [
    *TOPICS,
    "a",
    "b",
    "z",
    "aa",
    "ab",
    "a.b",
    "a-b",
    "a_b",
    "a.",
    ".a",
    "-",
    "_",
    "__a",
    "0",
    "019",
    "xX",
    "Xx.z-9",
]


def patterns(seed: int, count: int) -> list[str]:
    dice = random.Random(seed)
    made = {"".join(dice.choices(PARTS, k=dice.randint(1, 6))) for _ in range(count)}
    return sorted({pattern for pattern in made if pattern.strip()} | {pattern for pattern, _ in PATTERNS})


Find = Callable[[str], set[str] | None]


@pytest.fixture(scope="module")
def found_here(tmp_path_factory: pytest.TempPathFactory) -> Find:
    """Returns the names that a pattern selects, by `subscribePattern`; `None` if the pattern is refused."""
    data = tmp_path_factory.mktemp("topics")
    for name in NAMES:
        shutil.copytree(corpus.partition("15-one-record").path, data / f"{name}-0")

    def found(pattern: str) -> set[str] | None:
        try:
            ranges = _Query(_SourceOptions({"path": str(data), "subscribePattern": pattern})).ranges()
        except errors.SparkLogError as error:
            return {errors.BAD_OPTION: None, errors.NOT_FOUND: set()}[str(error.code)]
        return {one.topic for one in ranges if one.topic is not None}

    return found


@pytest.mark.long
def test_java_finds_a_pattern_in_the_same_names(spark: Any, found_here: Find) -> None:
    """By `RLIKE`, which is `Matcher.find` of a `java.util.regex.Pattern`, over every pattern and name at once."""
    here = {pattern: found_here(pattern) for pattern in patterns(seed=10, count=3000)}
    taken = {pattern: names for pattern, names in here.items() if names is not None}
    assert len(taken) > 500
    assert len(here) - len(taken) > 500
    pairs = [(pattern, pattern.strip(), name) for pattern, name in product(taken, NAMES)]
    table = spark.createDataFrame(pairs, "pattern string, trimmed string, name string")
    matched = table.where(f.expr("name RLIKE trimmed")).groupBy("pattern").agg(f.collect_set("name").alias("names"))
    in_java = {row.pattern: set(row.names) for row in matched.collect()}
    assert {pattern: names for pattern, names in taken.items() if names} == in_java
    # enough patterns match some of the names, but not all
    assert sum(0 < len(names) < len(NAMES) for names in taken.values()) > 130


@pytest.mark.long
def test_what_java_refuses_is_refused(spark: Any, found_here: Find) -> None:
    compile_in_java = spark._jvm.java.util.regex.Pattern.compile  # noqa: SLF001  (the only way to it)
    refused = 0
    for pattern in patterns(seed=11, count=600):
        try:
            compile_in_java(pattern.strip())
        except IllegalArgumentException:
            refused += 1
            assert found_here(pattern) is None, pattern
    assert refused > 150
