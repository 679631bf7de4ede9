"""Random queries: the source in Java, the one in Python and the same rows in Parquet give the same results."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator

import needs_pyspark  # noqa: F401
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_java.comparing import Arm, check
from spark_java.data_sets import CASES, DAMAGED, DataSet, Reading, copy, reading, timed
from spark_java.described import Query
from spark_java.random_queries import Constants, Generator, TableGenerator

SEED = 20
QUERIES = 25
MANY = pytest.mark.many
BATCHES = [pytest.param(name, number, marks=[MANY] if number else []) for name in CASES for number in range(6)]
BATCHES_OF_DAMAGED = [(name, number) for name in DAMAGED for number in range(2)]
BATCHES_WITH_DAMAGE = [(name, index % 2) for index, name in enumerate(DAMAGED)]
SETTINGS = [
    "spark.sql.shuffle.partitions",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.codegen.wholeStage",
    "spark.sql.adaptive.enabled",
]


@pytest.fixture(scope="module")
def data_set(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], DataSet]:
    folder = tmp_path_factory.mktemp("data")
    return functools.cache(lambda name: copy(name, folder, damaged=name in DAMAGED))


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    kept = {name: spark.conf.get(name) for name in SETTINGS}
    yield spark
    for name, value in kept.items():
        assert value is not None
        spark.conf.set(name, value)


def constants(data: DataSet, columns: list[str]) -> Constants:
    everything = data.everything()
    return Constants(
        columns=columns,
        offsets=[record.offset for _, record in everything],
        times=timed(data),
        topics=data.topics,
        partitions=[part.number for part in data.parts],
        keys=[record.key for _, record in everything if record.key is not None and len(record.key) < 40] or [b"k"],
    )


def load(session: SparkSession, form: str, data: DataSet, options: dict[str, str]) -> DataFrame:
    return session.read.format(form).options(**options).load(str(data.path))


def batch_of(
    session: SparkSession, data: DataSet, number: int, *more_columns: str
) -> tuple[str, random.Random, Reading, list[Query]]:
    """The text that describes a batch, its options and its queries."""
    rng = random.Random(f"{SEED} {data.name} {number}")
    options = reading(data, rng)
    generator = Generator(rng, constants(data, [*options.columns, *more_columns]))
    queries = [generator.query() for _ in range(QUERIES)]
    settings = ["1", rng.choice(["-1", "-1", "1MB"]), *(str(rng.random() < share).lower() for share in (0.1, 0.15))]
    for name, value in zip(SETTINGS, settings, strict=True):
        session.conf.set(name, value)
    text = f"seed {SEED}, {data.name} {number}, {settings}: {options}"
    return text, rng, options, queries


@pytest.mark.parametrize(("name", "number"), [*BATCHES, *BATCHES_OF_DAMAGED])
def test_random_queries(session: SparkSession, data_set: Callable[[str], DataSet], name: str, number: int) -> None:
    data = data_set(name)
    text, rng, options, queries = batch_of(session, data, number)
    python = {**options.options, **(options.splits if rng.random() < 0.2 else {})}
    rows = session.read.parquet(str(data.parquet)).where(options.condition).select(*options.columns).coalesce(1)
    arms = [
        Arm.of("java", load(session, "cordwood", data, {**options.options, **options.splits}), queries),
        Arm.of("python", load(session, "cordwood_python", data, python), queries),
        Arm.of("parquet", rows, queries, is_oracle=True),
    ]
    check(text, queries, arms, rng)


@pytest.mark.parametrize(("name", "number"), BATCHES_WITH_DAMAGE)
def test_random_queries_of_damaged_logs_with_rows_for_damage(
    session: SparkSession, data_set: Callable[[str], DataSet], name: str, number: int
) -> None:
    """Parquet has no rows for damage: it is the oracle of the other rows."""
    data = data_set(name)
    text, rng, options, queries = batch_of(session, data, 100 + number, *(["_error"] if number == 0 else []))
    options.options["mode"] = "PERMISSIVE"
    options.options.pop("columns", None)
    rows = session.read.parquet(str(data.parquet)).where(options.condition).select(*options.columns).coalesce(1)
    bases = [
        ("java", load(session, "cordwood", data, {**options.options, **options.splits})),
        ("python", load(session, "cordwood_python", data, options.options)),
    ]
    if number == 0:
        arms = [Arm.of(form, base, queries, is_oracle=form == "python") for form, base in bases]
    else:
        intact = [(form, base.where("_error IS NULL").select(*options.columns)) for form, base in bases]
        arms = [Arm.of(form, base, queries) for form, base in intact]
        arms.append(Arm.of("parquet", rows, queries, is_oracle=True))
    check(text, queries, arms, rng)


@pytest.mark.parametrize("table", ["batches", "segments"])
@pytest.mark.parametrize("name", ["directory", "legacy", "transactions"])
def test_random_queries_of_the_other_tables(
    session: SparkSession, data_set: Callable[[str], DataSet], name: str, table: str
) -> None:
    """The oracle is the source in Python, whose rows other tests compare with the files."""
    data = data_set(name)
    rng = random.Random(f"{SEED} {table} {name}")
    java, python = (load(session, form, data, {"table": table}) for form in ("cordwood", "cordwood_python"))
    generator = TableGenerator(rng, java.schema, python.toArrow().to_pylist())
    queries = [generator.query() for _ in range(QUERIES)]
    arms = [Arm.of("java", java, queries), Arm.of("python", python, queries, is_oracle=True)]
    check(f"seed {SEED}, {table} of {name}", queries, arms, rng)
