"""The floors: what the arms must reach, compared with each other in the same turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

from results import Results, Run

CORES = 2
PARTITION = ("partition/2-cores", "partition/1-cores")
KAFKA = ("kafka/all/noop/java", "kafka/all/noop/kafka")
# kinds, and rows per batch: Spark's default, and a size for a large pandas_udf
BATCHES = (("arrow", 10_000), ("pandas", 10_000), ("pandas", 100_000))


@dataclass(frozen=True)
class Floor:
    """A floor and its result."""

    name: str
    measured: list[float]
    limit: float
    at_most: bool = True

    @property
    def missed(self) -> bool:
        """Whether the median misses the floor. A floor that was not measured is not missed."""
        if not self.measured:
            return False
        return median(self.measured) > self.limit if self.at_most else median(self.measured) < self.limit


def floors(results: Results) -> Iterator[Floor]:
    """The floors whose arms have run."""

    def cpu(run: Run, of: Run) -> float:
        return run["cpu"] / of["cpu"]

    def rate(run: Run, of: Run) -> float:
        return of["wall"] / run["wall"]

    def of(what: Callable[..., float], *names: str) -> list[float]:
        return results.quotients(*names, of=what)

    for name, arm, limit in (
        ("all columns", "none/all/noop", 1.2),
        ("all columns, lz4", "lz4/all/noop", 1.1),
        ("all columns, zstd", "zstd/all/noop", 0.95),
        ("two columns", "none/two/noop", 0.6),
    ):
        measured = of(rate, f"read/{arm}/java", f"read/{arm}/parquet")
        yield Floor(f"rows/s: Java over Parquet, {name}", measured, limit, at_most=False)
    unchecked = of(rate, "read/none/two/unchecked/java", "read/none/two/noop/parquet")
    yield Floor("rows/s: Java over Parquet, two columns, checkCrc=false", unchecked, 0.9, at_most=False)
    count = [1 / ratio for ratio in of(rate, "read/none/all/count/java", "read/none/all/count/parquet")]
    yield Floor("time: Java over Parquet, count(*)", count, 1.5)
    all_, aggregate, two = "read/none/all/noop", "read/none/all/aggregate", "read/none/two/noop"
    yield Floor("CPU: Java over Python, all columns", of(cpu, f"{all_}/java", f"{all_}/python"), 0.4)
    yield Floor("rows/s: Java over Spark's Kafka source", of(rate, *KAFKA), 5, at_most=False)
    yield Floor("CPU: Spark's Kafka source over Java", of(cpu, *reversed(KAFKA)), 4, at_most=False)
    yield Floor("CPU: Python over zero-cost, noop", of(cpu, f"{all_}/python", f"{all_}/zero-cost"), 1.35)
    yield Floor("CPU: Python over zero-cost, aggregate", of(cpu, f"{aggregate}/python", f"{aggregate}/zero-cost"), 1.35)
    yield Floor("rows/s: Python over Parquet, noop", of(rate, f"{all_}/python", f"{all_}/parquet"), 0.7, at_most=False)
    yield Floor("CPU: Python, two columns over all four, noop", of(cpu, f"{two}/python", f"{all_}/python"), 0.65)
    busy = of(lambda run: run["cpu"] / run["wall"] / CORES, "partition/2-cores")
    yield Floor("one partition: share of two cores that it kept busy", busy, 0.85, at_most=False)
    shared = of(lambda run: 1 - run["idle"], "partition/2-cores")
    yield Floor("one partition: share of two cores busy with anything", shared, 0.85, at_most=False)
    yield Floor("one partition: rows/s, two cores over one", of(rate, *PARTITION), 1.8, at_most=False)
    for function in ("locate", "offset_for_time"):
        for kind, size in BATCHES:
            arm = f"look-up/{function}/{kind}/{size}"
            for order in ("sorted", "random"):
                names = (f"{arm}/native/{order}", f"{arm}/{order}", f"{arm}/{order}/targets")
                yield Floor(f"native share: {function}, {kind}, {size}, {order}", of(native_share, *names), 0.10)


def native_share(native: Run, query: Run, targets: Run) -> float:
    """The library's call alone, divided by the cost that the function adds to a query of the targets."""
    return native["cpu"] / (query["cpu"] - targets["cpu"])
