"""Runs many queries over each of several DataFrames in one action, and compares the rows of each query."""

from __future__ import annotations

import functools
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, StructType

from spark_java.described import Applied, Query, apply


def fingerprint(frame: DataFrame, number: int) -> DataFrame:
    """The number of the query and a hash of each row, in the order of the rows."""
    parts = []
    for i, column in enumerate(frame.schema):
        is_nested = isinstance(column.dataType, ArrayType | StructType)
        value = f"to_json(c{i}, map('ignoreNullFields', 'false'))" if is_nested else f"c{i}"
        parts += [value, f"isnull(c{i})"]
    renamed = frame.toDF(*(f"c{i}" for i in range(len(parts) // 2)))
    return renamed.selectExpr(f"{number} AS number", f"xxhash64({', '.join(parts)}) AS hash")


# every task of an action deserializes the plans of all its queries
QUERIES_OF_AN_ACTION = 5
Hashes = list[list[int]]


@dataclass
class Arm:
    """A DataFrame of one of the three sources, and the queries over it."""

    name: str
    base: DataFrame
    left: Applied
    frames: list[DataFrame]

    @classmethod
    def of(cls, name: str, base: DataFrame, queries: list[Query], *, is_oracle: bool = False) -> Arm:
        """The oracle returns all rows from which a limit in any order chooses."""
        left = Applied(base.sparkSession)
        return cls(name, base, left, [apply(query, base, left, with_limit=not is_oracle) for query in queries])

    def unions(self) -> list[DataFrame]:
        """Some queries each, as one DataFrame with their numbers."""
        marked = [fingerprint(frame, number) for number, frame in enumerate(self.frames)]
        return [functools.reduce(DataFrame.unionAll, some) for some in batched(marked, QUERIES_OF_AN_ACTION)]

    def hashes(self, unions: list[DataFrame]) -> Hashes:
        """The hashes of the rows of each query."""
        found: Hashes = [[] for _ in self.frames]
        for union in unions:
            table = union.toArrow()
            for number, value in zip(table["number"].to_pylist(), table["hash"].to_pylist(), strict=True):
                found[number].append(value)
        return found


def batched(frames: list[DataFrame], size: int) -> list[list[DataFrame]]:
    return [frames[start : start + size] for start in range(0, len(frames), size)]


def check(batch: str, queries: list[Query], arms: list[Arm], rng: random.Random) -> None:
    """Run all queries of an arm as one, and compare each one's rows with those of the last arm."""
    try:
        _check(batch, queries, arms, again=rng.random() < 0.15)
    finally:
        for arm in arms:
            arm.left.clear()


def _check(batch: str, queries: list[Query], arms: list[Arm], *, again: bool) -> None:
    unions = [arm.unions() for arm in arms]
    try:
        with ThreadPoolExecutor(len(arms)) as threads:
            found = list(threads.map(Arm.hashes, arms, unions))
        if again:
            assert [Counter(one) for one in arms[0].hashes(unions[0])] == [Counter(one) for one in found[0]]
    except Exception as error:
        raise AssertionError(f"{batch}\n" + failing(queries, arms)) from error
    *others, oracle = found
    for number, query in enumerate(queries):
        for arm, hashes in zip(arms, others, strict=False):
            if not is_right(query, hashes[number], oracle[number]):
                pytest.fail(f"{batch}\n{arm.name}: {query}\n{difference(arm.frames[number], arms[-1].frames[number])}")


def is_right(query: Query, found: list[int], wanted: list[int]) -> bool:
    if query.limit is not None:
        return len(found) == max(0, min(query.limit, len(wanted) - query.skip)) and Counter(found) <= Counter(wanted)
    return found == wanted if query.is_ordered else Counter(found) == Counter(wanted)


def failing(queries: list[Query], arms: list[Arm]) -> str:
    """The first query that fails, run alone."""
    for query, *frames in zip(queries, *(arm.frames for arm in arms), strict=True):
        for arm, frame in zip(arms, frames, strict=True):
            try:
                frame.collect()
            except Exception as error:  # noqa: BLE001  (any is reported)
                return f"{arm.name}: {query}\n{str(error)[:1500]}"
    return "each query alone succeeds"


def difference(found: DataFrame, wanted: DataFrame) -> str:
    """Rows that only one of the DataFrames has."""
    rows = [Counter(str(row) for row in frame.collect()) for frame in (found, wanted)]
    extra, lost = rows[0] - rows[1], rows[1] - rows[0]
    return f"{extra.total()} more: {list(extra)[:3]}\n{lost.total()} missing: {list(lost)[:3]}"
