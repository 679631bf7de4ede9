"""Random queries, with conditions whose constants are near the values of the rows."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import ArrayType, StructType

from spark_java.described import Query, Step

LONGS = ["9223372036854775807L", "-9223372036854775808L", "0L", "-1L"]
COMPARISONS = ["=", "<=>", "<", "<=", ">", ">=", "!="]


@dataclass
class Constants:
    """Values of the rows, from which filters are made."""

    columns: list[str]
    offsets: list[int]
    times: list[int]
    topics: list[str]
    partitions: list[int]
    keys: list[bytes]


class Filters:
    """Random conditions in SQL."""

    def __init__(self, rng: random.Random, known: Constants) -> None:
        self.rng = rng
        self.known = known
        # the columns on which filters are pushed are the most frequent
        self.columns = [
            *(name for name in ("offset", "timestamp", "partition", "topic") if name in known.columns for _ in "12"),
            *known.columns,
        ]

    def one(self, depth: int = 0) -> str:
        draw = self.rng.random()
        if depth < 2 and draw < 0.3:
            return f"({self.one(depth + 1)} AND {self.one(depth + 1)})"
        if depth < 2 and draw < 0.4:
            return f"({self.one(depth + 1)} OR {self.one(depth + 1)})"
        if depth < 2 and draw < 0.48:
            return f"NOT ({self.one(depth + 1)})"
        name = self.rng.choice(self.columns)
        if self.rng.random() < 0.06:
            return f"{name} IS {self.rng.choice(['NULL', 'NOT NULL'])}"
        return str(getattr(self, f"of_{name}")())

    def compared(self, name: str, value: str) -> str:
        operator = self.rng.choice(COMPARISONS)
        return f"{name} {operator} {value}" if self.rng.random() < 0.7 else f"{value} {operator} {name}"

    def among(self, name: str, constant: Callable[[], str], *more: str) -> str:
        draw = self.rng.random()
        if draw < 0.15:
            values = [constant() for _ in range(self.rng.choice([1, 2, 3, 14]))]
            if self.rng.random() < 0.2:
                values.append("NULL")
            return f"{name} {self.rng.choice(['IN', 'IN', 'NOT IN'])} ({', '.join(values)})"
        if draw < 0.25:
            return f"{name} BETWEEN {constant()} AND {constant()}"
        if draw < 0.3:
            return f"{name} {self.rng.choice(['=', '<=>', '<'])} NULL"
        if draw < 0.4 and more:
            return self.rng.choice(more)
        return self.compared(name, constant())

    def of_offset(self) -> str:
        def constant() -> str:
            near = self.rng.choice(self.known.offsets) + self.rng.choice([-1, 0, 0, 1])
            return self.rng.choice([f"{near}L", f"{near}L", f"{near}", f"{near}.5", self.rng.choice(LONGS)])

        return self.among("offset", constant, "offset % 3 = 1", "cast(offset AS string) LIKE '1%'", "abs(offset) < 50")

    def of_partition(self) -> str:
        def constant() -> str:
            return str(
                self.rng.choice([*self.known.partitions, 0, 1, -1, 2147483647, -2147483648, "3000000000L", "0.5"])
            )

        return self.among("partition", constant, "partition = offset", "partition + 1 = 1")

    def of_timestamp(self) -> str:
        def constant() -> str:
            near = self.rng.choice(self.known.times) * 1000
            edge = self.rng.choice(
                [0, -1000, -1001, -999, -1, 1, 253402300799999999, -62135596800000000, 9223372036854775807]
            )
            micros = self.rng.choice([near, near, near, near + self.rng.choice([-1, 1, 500, -500, 1000, -1000]), edge])
            return f"timestamp_micros({micros}L)"

        texts = ["timestamp >= '2023-11-14 22:13:25.1234567'", "timestamp < DATE'2023-11-15'", "second(timestamp) < 30"]
        return self.among("timestamp", constant, *texts)

    def of_topic(self) -> str:
        def constant() -> str:
            topic = self.rng.choice(self.known.topics)
            return f"'{self.rng.choice([topic, topic, topic[:3], topic + 'z', '', 'é'])}'"

        start = self.rng.choice(self.known.topics)[: self.rng.randint(0, 4)]
        like = [
            f"topic LIKE '{start}%'",
            f"startswith(topic, '{start}')",
            f"topic LIKE '%{start}'",
            "upper(topic) > 'D'",
        ]
        return self.among("topic", constant, *like) if self.rng.random() < 0.7 else self.rng.choice(like)

    def of_timestampType(self) -> str:  # noqa: N802  (the name of the column)
        return self.among("timestampType", lambda: str(self.rng.choice([-1, 0, 1, 2])))

    def _of_binary(self, name: str) -> str:
        def constant() -> str:
            return f"X'{self.rng.choice([*self.known.keys, b'', b'k']).hex()}'"

        return self.among(
            name, constant, f"length({name}) > 10", f"cast({name} AS string) LIKE '%1%'", f"isnull({name})"
        )

    def of_key(self) -> str:
        return self._of_binary("key")

    def of_value(self) -> str:
        return self._of_binary("value")

    def of_headers(self) -> str:
        return self.rng.choice(
            ["size(headers) > 1", "get(headers, 0).key > 'c'", "headers IS NULL", "get(headers, 1).value IS NULL"]
        )

    def of__error(self) -> str:
        near = self.rng.choice(self.known.offsets)
        return self.rng.choice(
            ["_error IS NULL", f"_error.startOffset <= {near}L", "_error.file LIKE '%0.log'", "_error.reason > 'c'"]
        )


class Generator(Filters):
    """Random queries over the columns of a source."""

    def query(self) -> Query:
        steps: list[Step] = [("where", self.one()) for _ in range(self.rng.choice([0, 0, 1, 1, 1, 2]))]
        if self.rng.random() < 0.06:
            steps.append(("cache", None))
        if self.rng.random() < 0.08:
            steps.append(("view", self.one()))
        endings = [self.rows] * 5 + [self.aggregated] * 4 + [self.grouped, self.distinct, self.joined, self.windowed]
        endings += (
            [self.ordered] * 2 + [self.limited] * 2 + [self.counted_limit, self.combined, self.combined, self.looked_up]
        )
        return self.rng.choice(endings)(steps)

    def some(self, least: int = 0) -> list[str]:
        return self.rng.sample(self.known.columns, self.rng.randint(least, len(self.known.columns)))

    def rows(self, steps: list[Step]) -> Query:
        names = self.some()
        return Query([*steps, ("select", names)] if self.rng.random() < 0.9 else steps)

    def aggregates(self) -> list[str]:
        plain = ["count(*)", "count(1)", "min(offset)", "max(offset)", "min(timestamp)", "max(timestamp)"]
        others = [f"{function}({name})" for function in ("min", "max", "count") for name in self.known.columns]
        others += ["sum(length(value))", "sum(offset)", "max(offset) - min(offset)", "count(DISTINCT partition)"]
        others += [f"count(*) FILTER (WHERE {self.one(2)})", f"count_if({self.one(2)})", "max(offset + 1)"]
        usable = [one for one in self.rng.choice([plain, plain, others]) if self._is_usable(one)]
        return [
            f"{one} AS a{i}" for i, one in enumerate(self.rng.sample(usable, self.rng.randint(1, min(4, len(usable)))))
        ]

    def _is_usable(self, aggregate: str) -> bool:
        unknown = {"key", "value", "timestamp", "headers"} - set(self.known.columns)
        is_ordered = "(headers)" not in aggregate or aggregate.startswith("count")
        return is_ordered and not any(f"({name})" in aggregate for name in unknown)

    def aggregated(self, steps: list[Step]) -> Query:
        return Query([*steps, ("agg", self.aggregates())])

    def grouped(self, steps: list[Step]) -> Query:
        keys = self.rng.choice(["topic", "partition", "topic, partition", "offset % 5", "topic, offset % 2"])
        return Query([*steps, ("group", (keys, self.aggregates()))])

    def distinct(self, steps: list[Step]) -> Query:
        return Query([*steps, ("select", self.some(1)), ("distinct", None)])

    def windowed(self, steps: list[Step]) -> Query:
        text = "count(*) OVER (PARTITION BY topic ORDER BY partition, offset) AS n"
        return Query([*steps, ("selectExpr", ["topic", "offset", text])])

    def joined(self, steps: list[Step]) -> Query:
        kind = self.rng.choice(["inner", "left", "full", "left_semi", "left_anti"])
        return Query([*steps, ("select", ["topic", "partition", "offset"]), ("join", (self.one(), kind))])

    def combined(self, steps: list[Step]) -> Query:
        names = self.some(1)
        operation = self.rng.choice(["unionAll", "unionAll", "intersect", "exceptAll", "subtract", "intersectAll"])
        condition = self.one()
        # Spark makes a filter of the difference, and cannot pass a comparison with NULL inside it to a source
        while operation == "subtract" and re.search(r"(=|<|>) NULL", condition):
            condition = self.one()
        return Query([*steps, ("select", names), ("combine", (operation, condition, names))])

    def looked_up(self, steps: list[Step]) -> Query:
        function = self.rng.choice(["max", "min"])
        return Query([*steps, ("lookUp", (f"{function}(offset)", self.one())), ("select", self.some(1))])

    def ordered(self, steps: list[Step]) -> Query:
        names = self.rng.sample(
            [name for name in self.known.columns if name not in {"headers", "_error"}], self.rng.randint(0, 2)
        )
        keys = [f"{name} {self.rng.choice(['ASC', 'DESC', 'DESC NULLS FIRST', 'ASC NULLS LAST'])}" for name in names]
        last = self.rng.choice(["", " DESC"])
        steps = [*steps, ("order", [*keys, *(f"{name}{last}" for name in ("offset", "topic", "partition"))])]
        if self.rng.random() < 0.5:
            steps.append(("limit", self.rng.choice([0, 1, 5, 40, 10_000])))
        if self.rng.random() < 0.3:
            steps.append(("offset", self.rng.choice([1, 30])))
        return Query([*steps, ("select", self.some(1))], is_ordered=True)

    def limited(self, steps: list[Step]) -> Query:
        return Query(
            [*steps, ("select", self.some(1))],
            limit=self.rng.choice([0, 1, 7, 90, 5000]),
            skip=self.rng.choice([0, 0, 3]),
        )

    def counted_limit(self, steps: list[Step]) -> Query:
        return Query([*steps, ("limit", self.rng.choice([1, 10, 100, 5000])), ("agg", ["count(*) AS n"])])


class TableGenerator:
    """Random queries over a table of any columns, with constants from its rows."""

    def __init__(self, rng: random.Random, schema: StructType, rows: list[dict[str, Any]]) -> None:
        self.rng = rng
        self.rows = rows
        self.names = schema.fieldNames()
        self.simple = [column.name for column in schema if not isinstance(column.dataType, ArrayType)]

    def condition(self) -> str:
        name = self.rng.choice(self.simple)
        value = self.rng.choice(self.rows)[name]
        if value is None or self.rng.random() < 0.1:
            return f"{name} IS {self.rng.choice(['NULL', 'NOT NULL'])}"
        constant = f"'{value}'" if isinstance(value, str | dt.datetime) else str(value)
        operands = [name, self.rng.choice(COMPARISONS), constant]
        return " ".join(operands if self.rng.random() < 0.7 else operands[::-1])

    def query(self) -> Query:
        steps: list[Step] = [("where", self.condition()) for _ in range(self.rng.randint(0, 2))]
        if steps and self.rng.random() < 0.2:
            steps.append(("view", f"{self.condition()} OR {self.condition()}"))
        some = self.rng.sample(self.names, self.rng.randint(0, 5))
        one = self.rng.choice(self.simple)
        aggregates = [f"count({one}) AS n", f"min({one}) AS low", f"max({one}) AS high", "count(*) AS rows"]
        endings: list[list[Step]] = [
            [("select", some)],
            [("agg", self.rng.sample(aggregates, 2))],
            [("group", ("topic", aggregates))],
            [("select", [one, *some]), ("distinct", None)],
            [("select", self.rng.sample(self.simple, 3)), ("limit", 10_000), ("agg", ["count(*) AS n"])],
        ]
        if self.rng.random() < 0.15:
            return Query([*steps, ("select", [one])], limit=self.rng.choice([1, 10, 1000]))
        return Query([*steps, *self.rng.choice(endings)])
