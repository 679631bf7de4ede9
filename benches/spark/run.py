"""The cost of a read through Spark, compared with Spark's own readers and with a source that does nothing. Linux.

Each arm has its own process and JVM, which are new in each round. Arms that are compared run concurrently and take
turns. A ratio is of the same turn; a round's result is the median of its turns. Exit code 1: an answer was wrong, or an
arm failed. A missed floor is an exit code only with `--strict`.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import generate
from broker import serving, source_jars
from cordwood.spark import jar
from floors import BATCHES, CORES, floors
from generate import BATCH_RECORDS, GIB, Shape, Written
from results import Results, record, spread, table

HERE = Path(__file__).parent
ALL, TWO = "key,value,offset,timestamp", "offset,timestamp"
SPLITS = 8
# the source's default
SPLIT_BYTES = 128 << 20


@dataclass
class Arm:
    """A workload with a name. `elements` is the divisor of its figures; `check` returns what is wrong."""

    name: str
    spec: dict[str, Any]
    elements: int
    check: Callable[[dict[str, Any], list[Any]], list[str]] = lambda _, __: []
    first_on_path: tuple[str, ...] = ()
    """Directories of packages that replace those of the environment."""


class ArmError(Exception):
    """An arm ended early; the message is the end of its output."""


class Process:
    """A running arm, which waits for commands."""

    def __init__(self, arm: Arm, scratch: Path) -> None:
        """Start it, and wait until it is ready."""
        # workers import the bench's modules, like the driver
        paths = [*arm.first_on_path, str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
        self.noise = scratch / f"{arm.name.replace('/', '-')}.stderr"
        with self.noise.open("w") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, str(HERE / "workload.py"), json.dumps(arm.spec)],
                env=environment,
                cwd=scratch,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        self.answer()

    def answer(self) -> dict[str, Any]:
        """The next line that is a result."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("RESULT "):
                return json.loads(line.removeprefix("RESULT "))
        raise ArmError("\n".join(self.noise.read_text().splitlines()[-40:]))

    def send(self, what: str) -> dict[str, Any]:
        """Send the command `run` or `check`, and return its result."""
        assert self.process.stdin is not None
        # if it has ended, the reason is in its output
        with suppress(BrokenPipeError):
            print(what, file=self.process.stdin, flush=True)
        return self.answer()

    def close(self) -> None:
        """End it."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()


def play(arms: list[Arm], number: int, options: argparse.Namespace, results: Results, scratch: Path) -> None:
    """Run a round: a new process for every arm, which take turns. Answers are checked in the first round."""
    shift = number % len(arms)
    arms = arms[shift:] + arms[:shift]
    start = time.monotonic()
    with ExitStack() as stack:
        processes: dict[str, Process] = {}
        try:
            for arm in arms:
                processes[arm.name] = process = Process(arm, scratch)
                stack.callback(process.close)
            # look-up queries are short: more of them are needed until the JVM has compiled the hot code
            warm_ups = options.warm_ups * (3 if any("lookups" in arm.spec for arm in arms) else 1)
            for turn in range(-warm_ups, options.turns):
                for arm in arms:
                    for name, run in processes[arm.name].send("run").items():
                        if turn >= 0:
                            results.add(f"{arm.name}/{name}".rstrip("/"), number, arm.elements, run)
            if number == 0:
                for arm in arms:
                    aggregates = [run["answer"] for run in results.runs.get(arm.name, [[]])[0]]
                    wrong = arm.check(processes[arm.name].send("check"), aggregates)
                    results.wrong += [f"{arm.name}: {what}" for what in wrong]
        except ArmError as error:
            results.wrong.append(f"{arm.name} failed in round {number + 1}")
            print(f"round {number + 1}: {arm.name} FAILED\n{error}", flush=True)
    print(f"round {number + 1}: {len(arms)} arms, {options.turns} turns, {time.monotonic() - start:.0f} s", flush=True)
    report(arms, number, results)


def report(arms: list[Arm], number: int, results: Results) -> None:
    """The result of a round."""
    for name, rounds in results.runs.items():
        if not name.startswith(tuple(arm.name for arm in arms)) or len(rounds) <= number:
            continue
        cpu, jvm, python, wall = (results.ns(name, what)[-1] for what in ("cpu", "jvm", "python", "wall"))
        print(f"  {name}: CPU {cpu:.0f} ns ({jvm:.0f} + {python:.0f}), wall {wall:.0f} ns", flush=True)


def make(shape: Shape, path: Path, *, contents: bool = True) -> Written:
    """A log on disk, read back before anything is timed."""
    start = time.monotonic()
    written = generate.write_log(shape, path, checksums=contents)
    generate.check(written, contents=contents)
    took = time.monotonic() - start
    size = f"{written.rows} rows, {written.bytes / 1e6:.0f} MB in {written.segments} segments"
    print(f"log ({shape.codec}): {size}, written and read back, {took:.0f} s", flush=True)
    return written


def read_check(
    written: Written, *, counted: bool, rows: range | None = None, sink: str = "noop"
) -> Callable[[dict[str, Any], list[Any]], list[str]]:
    """Compare the sums with the generator's; of prebuilt rows, and of a range, only numbers and lengths."""
    if rows is None:
        rows = range(written.rows)
        sums = {name: getattr(written, name) for name in ("timestamps", "value_crcs", "key_crcs")}
    else:
        sums = {}
    sums = {name: sum_ for name, sum_ in sums.items() if sum_ and counted}
    wanted = sums | {"rows": len(rows), "value_bytes": len(rows) * generate.VALUE_BYTES}
    if counted:
        wanted["last_offset"] = rows[-1]

    def check(found: dict[str, Any], aggregates: list[Any]) -> list[str]:
        print(f"  {found}", flush=True)
        wrong = [f"{name} is {found[name]}, not {it}" for name, it in wanted.items() if found.get(name, it) != it]
        # a prebuilt batch is repeated: its largest offset has no meaning
        right = [len(rows)] if sink == "count" else [wanted["value_bytes"], *([rows[-1]] if counted else [])]
        return wrong + [f"the aggregate is {it}" for it in aggregates if it and it[: len(right)] != right]

    return check


def read_arm(name: str, format_: str, written: Written, **spec: Any) -> Arm:
    """Reading the rows of `written` in some format."""
    full = {
        "kind": "read",
        "format": format_,
        "path": written.path,
        "columns": ALL,
        "sink": "noop",
        "rows": written.rows,
        "splits": SPLITS,
        "cores": CORES,
    }
    rows = None
    if "range" in spec:
        rows = range(*((time_ - generate.START_TIMESTAMP) * generate.RECORDS_PER_MS for time_ in spec["range"]))
    check = read_check(written, counted=format_ != "zero-cost", rows=rows, sink=spec.get("sink", "noop"))
    return Arm(name, full | spec, written.rows, check)


def java_arm(name: str, written: Written, **spec: Any) -> Arm:
    """The source in Java."""
    return read_arm(name, "java", written, settings={"spark.jars": jar()}, **spec)


def parquet_arm(name: str, file: Path, written: Written, **spec: Any) -> Arm:
    """Spark's own scan, in as many splits."""
    settings = {"spark.sql.files.maxPartitionBytes": str(math.ceil(file.stat().st_size / SPLITS))}
    return read_arm(name, "parquet", written, path=str(file), settings=settings, **spec)


def read(options: argparse.Namespace, data: Path, results: Results) -> None:
    """Reading millions of rows."""
    batches = math.ceil(options.rows / BATCH_RECORDS)
    segment_bytes = math.ceil(batches / SPLITS) * generate.batch_bytes()
    logs, files = {}, {}
    # the same number of segments: those of compressed logs are smaller
    for codec, part in (("none", 1.0), ("lz4", 0.7), ("zstd", 0.4)):
        shape = Shape(batches, codec, int(segment_bytes * part))
        logs[codec], files[codec] = make(shape, data / codec / "orders-0"), data / f"{codec}.parquet"
        generate.write_parquet(shape, files[codec], codec)
        print(f"{files[codec].name}: {files[codec].stat().st_size / 1e6:.0f} MB", flush=True)
    log, file = logs["none"], files["none"]
    splits = {"maxPartitionBytes": str(SPLIT_BYTES)}
    milliseconds = log.rows // generate.RECORDS_PER_MS
    start = generate.START_TIMESTAMP + milliseconds // 3
    hundredth = (start, start + milliseconds // 100)
    groups = [
        [
            java_arm("read/none/all/noop/java", log),
            read_arm("read/none/all/noop/python", "python", log, options=splits),
            read_arm("read/none/all/noop/zero-cost", "zero-cost", log),
            parquet_arm("read/none/all/noop/parquet", file, log),
        ],
        [
            java_arm("read/none/two/noop/java", log, columns=TWO),
            java_arm("read/none/two/unchecked/java", log, columns=TWO, options={"checkCrc": "false"}),
            read_arm("read/none/two/noop/python", "python", log, columns=TWO, options=splits),
            read_arm("read/none/two/noop/zero-cost", "zero-cost", log, columns=TWO),
            parquet_arm("read/none/two/noop/parquet", file, log, columns=TWO),
        ],
        [
            java_arm("read/none/all/aggregate/java", log, sink="aggregate"),
            read_arm("read/none/all/aggregate/python", "python", log, sink="aggregate", options=splits),
            read_arm("read/none/all/aggregate/zero-cost", "zero-cost", log, sink="aggregate"),
            parquet_arm("read/none/all/aggregate/parquet", file, log, sink="aggregate"),
        ],
        [
            java_arm("read/none/all/count/java", log, sink="count"),
            parquet_arm("read/none/all/count/parquet", file, log, sink="count"),
        ],
        [
            java_arm("read/none/all/range/java", log, range=hundredth),
            parquet_arm("read/none/all/range/parquet", file, log, range=hundredth),
        ],
        *(
            [
                java_arm(f"read/{codec}/all/noop/java", logs[codec]),
                read_arm(
                    f"read/{codec}/all/noop/python", "python", logs[codec], options={"maxPartitionBytes": str(size)}
                ),
                parquet_arm(f"read/{codec}/all/noop/parquet", files[codec], logs[codec]),
            ]
            for codec, size in (("lz4", SPLIT_BYTES * 7 // 10), ("zstd", SPLIT_BYTES // 2))
        ),
    ]
    for number in range(options.rounds):
        for arms in groups:
            play(arms, number, options, results, data)


def kafka(options: argparse.Namespace, data: Path, results: Results) -> None:
    """The same rows through Spark's Kafka source, from a broker that serves the same files."""
    path = data / "none" / "orders-0"
    batches = math.ceil(options.rows / BATCH_RECORDS)
    shape = Shape(batches, segment_bytes=math.ceil(batches / SPLITS) * generate.batch_bytes())
    shutil.rmtree(path, ignore_errors=True)
    log = make(shape, path)
    with serving(Path(log.path), data / "broker") as address:
        kafka_options = {
            "kafka.bootstrap.servers": address,
            "subscribe": "orders",
            "startingOffsets": "earliest",
            "minPartitions": str(SPLITS),
        }
        settings = {"spark.jars": ",".join(source_jars())}
        arms = [
            java_arm("kafka/all/noop/java", log),
            read_arm("kafka/all/noop/kafka", "kafka", log, options=kafka_options, settings=settings),
        ]
        for arm in arms:
            arm.first_on_path = (str(options.kafka_spark.resolve()),)
        for number in range(options.rounds):
            play(arms, number, options, results, data)


def partition(options: argparse.Namespace, data: Path, results: Results) -> None:
    """One partition of several segments of 1 GiB, on one core and on two."""
    path = data / "big" / "orders-0"
    try:
        written = make(Shape(math.ceil(options.partition_gib * GIB / generate.batch_bytes())), path, contents=False)
        arms = [read_arm(f"partition/{cores}-cores", "python", written, cores=cores) for cores in (CORES, 1)]
        for number in range(options.rounds):
            play(arms, number, options, results, data)
    finally:
        shutil.rmtree(path.parent, ignore_errors=True)


def look_up(options: argparse.Namespace, data: Path, results: Results) -> None:
    """The functions over a column of targets."""
    path = data / "none" / "orders-0"
    batches = math.ceil(options.rows / BATCH_RECORDS)
    if not path.exists():
        make(Shape(batches, segment_bytes=math.ceil(batches / SPLITS) * generate.batch_bytes()), path)
    common = {
        "path": str(path),
        "rows": batches * BATCH_RECORDS,
        "batch_bytes": generate.batch_bytes(),
        "lookups": options.lookups,
        # one per core: with more, starting tasks would dominate
        "splits": CORES,
        "cores": CORES,
    }

    def check(right: dict[str, Any], _: list[Any]) -> list[str]:
        wrong = {order: many for order, many in right.items() if many != options.lookups}
        return [f"{many} of {options.lookups} answers are right, {order}" for order, many in wrong.items()]

    def group(kind: str, size: int) -> list[Arm]:
        settings = {"spark.sql.execution.arrow.maxRecordsPerBatch": str(size)}
        arms = []
        for variant, function in (("ours", "locate"), ("ours", "offset_for_time"), ("zero-cost", "locate")):
            spec = {"kind": "look-up", "variant": variant, "function": function, "flavour": kind, "settings": settings}
            name = function if variant == "ours" else variant
            arms.append(Arm(f"look-up/{name}/{kind}/{size}", common | spec, options.lookups, check))
            if variant == "ours":
                spec = {"kind": "native", "function": function, "records_per_batch": size}
                arms.append(Arm(f"look-up/{name}/{kind}/{size}/native", common | spec, options.lookups))
        return arms

    for number in range(options.rounds):
        for kind, size in BATCHES:
            play(group(kind, size), number, options, results, data)


def arguments() -> argparse.Namespace:
    """The arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    sections = ["read", "kafka", "partition", "look-up"]
    parser.add_argument("--only", action="append", choices=sections, help="a part to run; may be repeated")
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=5, help="timed runs in a process")
    parser.add_argument(
        "--warm-ups", type=int, default=3, help="untimed runs before them; three times as many of look-ups"
    )
    parser.add_argument("--lookups", type=int, default=1_000_000)
    parser.add_argument("--partition-gib", type=float, default=4)
    parser.add_argument("--data", type=Path, help="directory for the data; by default a temporary one")
    parser.add_argument(
        "--kafka-spark",
        type=Path,
        help="directory of a Spark that has a Kafka source; without it, no `kafka`",
    )
    parser.add_argument("--record", type=Path, help="a CSV file; by default benches/record/<date>-spark.csv")
    parser.add_argument("--strict", action="store_true", help="a missed floor is an exit code, too")
    options = parser.parse_args()
    options.only = options.only or sections
    return options


def main() -> int:
    """Run the bench."""
    # clean up after SIGTERM, too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = arguments()
    results = Results()
    with tempfile.TemporaryDirectory(prefix="cordwood-bench-", dir=options.data) as directory:
        data = Path(directory)
        # the large partition comes last, after the other data was removed, to save disk space
        for name, section in (("read", read), ("kafka", kafka), ("look-up", look_up)):
            if name in options.only and (name != "kafka" or options.kafka_spark):
                section(options, data, results)
        for left in data.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        if "partition" in options.only:
            partition(options, data, results)
    table(results)
    print()
    missed = False
    for floor in floors(results):
        if floor.measured:
            missed |= floor.missed
            verdict = "MISSED" if floor.missed else "kept"
            limit = f"{'at most' if floor.at_most else 'at least'} {floor.limit}"
            print(f"{verdict:<7} {floor.name:<56} {spread(floor.measured, '.2f'):>18}   {limit}")
    path = options.record or HERE.parent / "record" / f"{dt.datetime.now(dt.UTC).date()}-spark.csv"
    record(results, path)
    print(f"\nrecorded in {path}")
    for wrong in results.wrong:
        print(f"WRONG   {wrong}")
    return 1 if results.wrong or (options.strict and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
