"""Pickles contain no handles, each log is opened once, and only planned segments are opened."""

from __future__ import annotations

import gc
import itertools
import os
import pickle
import re
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpus
import pyarrow as pa
import pytest
from batches import Rec, batch, name
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSourceReader
from scripts import run, write_script

import cordwood as cw
from cordwood._core import _logs_opened as logs_opened
from cordwood._core import _open_log as open_cached
from cordwood.spark import errors, locate
from cordwood.spark.source import LogDataSource
from spark.reading import again, plan, source, struct

OPEN_FILES = Path("/proc/self/fd")
PLAIN = corpus.partition("01-plain")


def test_readers_splits_and_sources_are_small_pickles() -> None:
    """Each task receives them: they must not contain a log, an index or the whole plan."""
    found = plan(corpus.partition("20-many-segments").path, minPartitions=20)
    assert len(cloudpickle.dumps(found.source)) < 10_000
    assert len(cloudpickle.dumps(found.reader)) < 10_000
    assert max(len(cloudpickle.dumps(split)) for split in found.splits) < 5_000
    assert len(cloudpickle.dumps(locate(str(PLAIN.path)).udf.func)) < 5_000


def test_pickles_of_a_reader_contain_no_handle() -> None:
    """They open nothing when they are loaded."""
    data = source(PLAIN.path)
    reader = data.reader(schema=struct("offset"))
    splits = reader.partitions()
    # objects of earlier tests, which would otherwise be collected meanwhile
    gc.collect()
    before = len(list(OPEN_FILES.iterdir()))
    copies = [again(value) for value in (data, reader, *splits) for _ in range(20)]
    assert len(list(OPEN_FILES.iterdir())) == before
    assert len(copies) >= 60


READ_ELSEWHERE = """
import pickle, sys
with open(sys.argv[1], "rb") as file:
    reader, splits = pickle.load(file)
rows = [row for split in splits for batch in reader.read(split) for row in batch.column(0).to_pylist()]
print(len(rows), sum(rows))
"""


@pytest.mark.python_source
def test_another_process_reads_a_plan(tmp_path: Path, script_environment: dict[str, str]) -> None:
    found = plan(PLAIN.path, schema=struct("offset"), maxPartitionBytes=30_000)
    jobs = tmp_path / "jobs"
    jobs.write_bytes(cloudpickle.dumps((found.reader, found.splits)))
    done = run(write_script(tmp_path, READ_ELSEWHERE), jobs, env=script_environment)
    assert done.stdout.split() == ["1500", str(sum(range(1500)))]


COLLECT = """
import gc, pickle, sys
with open(sys.argv[1], "rb") as file:
    reader, splits = pickle.load(file)
for split in splits:
    list(reader.read(split))
    print(gc.get_freeze_count() > 10_000, len(gc.get_objects()) < 1_000, "pandas" in sys.modules)
"""


@pytest.mark.python_source
def test_a_worker_does_not_import_pandas_and_leaves_few_objects_to_collect(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    found = plan(PLAIN.path, minPartitions=3)
    jobs = tmp_path / "jobs"
    jobs.write_bytes(cloudpickle.dumps((found.reader, found.splits)))
    done = run(write_script(tmp_path, COLLECT), jobs, env=script_environment)
    assert len(found.splits) >= 3
    assert done.stdout.split() == ["True", "True", "False"] * len(found.splits)


LOOK_UP = """
import sys
import cordwood as cw
from cordwood.spark import locate, offset_for_time
[columns] = cw.Log(sys.argv[1]).scan(columns=["offset", "timestamp"], max_rows=10_000)
where = locate(sys.argv[1], kind="arrow").udf.func(columns.column("offset"))
when = offset_for_time(sys.argv[1], kind="arrow").udf.func(columns.column("timestamp"))
print(len(where), where.null_count, when.null_count, "pandas" in sys.modules)
"""


def test_an_arrow_look_up_does_not_import_pandas(tmp_path: Path, script_environment: dict[str, str]) -> None:
    done = run(write_script(tmp_path, LOOK_UP), PLAIN.path, env=script_environment)
    assert done.stdout.split() == ["1500", "0", "0", "False"]


@pytest.mark.python_source
@pytest.mark.strace
def test_a_task_opens_only_the_segments_of_its_range(tmp_path: Path, script_environment: dict[str, str]) -> None:
    """By offsets and by times; of the other segments only the last may be opened, for the log's end."""
    if shutil.which("strace") is None:
        assert "CI" not in os.environ, "strace is missing, and here it must be there"
        pytest.skip("strace is not installed")
    script = write_script(tmp_path, READ_ELSEWHERE)
    times = [r.timestamp for r in corpus.visible(PLAIN)]
    part = corpus.partition("20-many-segments")
    for source_part, options, allowed in (
        (PLAIN, {"startingOffsets": {"orders": {"0": 450}}, "endingOffsets": {"orders": {"0": 470}}}, {400, 1217}),
        (PLAIN, {"startingTimestamp": times[900], "endingTimestamp": times[910]}, {807, 1217}),
        (part, {"startingOffsets": {"minutes": {"0": 100}}, "endingOffsets": {"minutes": {"0": 104}}}, None),
    ):
        found = plan(source_part.path, schema=struct("offset"), **options)
        jobs, output = tmp_path / "jobs", tmp_path / "trace.txt"
        jobs.write_bytes(cloudpickle.dumps((found.reader, found.splits)))
        tracer = ("strace", "-f", "-y", "-s", "300", "-e", "trace=open,openat", "-o", str(output))
        run(script, jobs, env=script_environment, before=tracer)
        lines = [line for line in output.read_text(errors="replace").splitlines() if str(source_part.path) in line]
        opened = {int(found[1]) for line in lines if (found := re.search(r"(\d{20})\.log", line))}
        assert opened
        if allowed is None:
            held = {b["segment"] for b in corpus.batches(part) if b["baseOffset"] < 104 and b["lastOffset"] >= 100}
            allowed = held | {max(part.bases)}  # noqa: PLW2901
        assert opened <= allowed


@pytest.fixture
def opened() -> Callable[[], int]:
    """Returns how many logs were opened since the last call."""
    before = logs_opened()

    def since() -> int:
        nonlocal before
        before, last = logs_opened(), before
        return before - last

    return since


def test_the_cache_opens_a_path_once(monkeypatch: pytest.MonkeyPatch, copied: Any, opened: Callable[[], int]) -> None:
    """Under every spelling of the path."""
    path = copied(corpus.partition("19-leader-epochs").path)
    monkeypatch.chdir(path.parent)
    for spelling in (str(path), str(path), f"{path}/", path.name):
        assert open_cached(spelling).log_end_offset > 0
    assert opened() == 1
    open_cached(str(path), io="mmap")
    assert opened() == 1
    open_cached(str(path))
    open_cached(str(path), refresh=False)
    assert opened() == 0


def grown(path: Path, first: int) -> None:
    path.mkdir(exist_ok=True)
    with (path / name(0)).open("ab") as file:
        file.write(batch(first, [Rec(b"x", timestamp=first)]))


@pytest.mark.parametrize("refresh", [True, False])
def test_a_replaced_directory_is_opened_again(copied: Any, opened: Callable[[], int], refresh: bool) -> None:
    path = copied(PLAIN.path)
    assert open_cached(str(path)).log_end_offset == 1500
    shutil.copytree(corpus.partition("15-one-record").path, path.parent / "new")
    path.rename(path.parent / "old")
    (path.parent / "new").rename(path)
    # without refresh the cached log is returned, for the earlier plan
    assert open_cached(str(path), refresh=refresh).log_end_offset == (1 if refresh else 1500)
    assert open_cached(str(path)).log_end_offset == 1
    assert opened() == 2


SEALED = "00000000000000000400.log"


def cut(file: Path) -> None:
    os.truncate(file, 9085)


def flipped(file: Path) -> None:
    with file.open("r+b") as opened_file:
        opened_file.seek(5000)
        opened_file.write(b"\xff\xfe\xfd")


def offsets_or_code(path: Path) -> Any:
    """The result of planning and reading in this process, which caches its logs."""
    try:
        table = pa.concat_tables(plan(path, schema=struct("offset"), failOnDataLoss=False).tables())
    except cw.CordwoodError as error:
        return errors.parse(error).code
    return table["offset"].to_pylist()


@pytest.mark.parametrize("age", [0, 3600])
@pytest.mark.parametrize("change", [cut, flipped])
def test_a_sealed_segment_that_changed_in_place_is_read_again(copied: Any, change: Any, age: int) -> None:
    """The directory, the last segment and the checkpoint do not change; nor does the time, within a tick."""
    path = copied(PLAIN.path)
    file, whole = path / SEALED, PLAIN.path / SEALED
    moment = time.time() - age
    offsets = [r.offset for r in corpus.visible(PLAIN)]
    for other in path.iterdir():
        os.utime(other, (moment, moment))
    for _ in range(3):
        assert offsets_or_code(path) == offsets
        change(file)
        found = offsets_or_code(path)
        assert found == "CORDWOOD_CORRUPT_BATCH" or (found[0], found[-1], len(found)) == (0, 1499, 1149)
        assert found == offsets_or_code(path)
        file.write_bytes(whole.read_bytes())


@pytest.mark.parametrize("age", [0, 3600])
def test_the_cache_detects_appends_rolls_removals_and_replacements(tmp_path: Path, age: int) -> None:
    """A worker may run for hours: old and recent changes are detected."""
    path = tmp_path / "t-0"
    when = itertools.count(int(time.time()) - age)

    def now() -> cw.Log:
        for file in [path, *path.iterdir(), *tmp_path.glob("log-*")]:
            if age and file.stat().st_mtime > time.time() - age / 2:
                os.utime(file, (moment := next(when), moment))
        return open_cached(str(path))

    grown(path, 0)
    assert now().log_end_offset == 1
    grown(path, 1)
    assert now().log_end_offset == 2
    (path / name(2)).write_bytes(batch(2, [Rec(b"y", timestamp=2)]))
    assert now().log_end_offset == 3
    (path / name(0)).unlink()
    assert now().log_start_offset == 2
    shutil.rmtree(path)
    grown(path, 0)
    assert now().log_end_offset == 1
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 1\n")
    assert now().log_start_offset == 1


def test_the_cache_is_bounded(tmp_path: Path) -> None:
    """A job over thousands of partitions must not run out of file descriptors."""
    for number in range(150):
        grown(tmp_path / f"t-{number}", 0)
    before = len(list(OPEN_FILES.iterdir()))
    for number in range(150):
        log = open_cached(str(tmp_path / f"t-{number}"))
        assert log.scan(columns=["offset"]).to_arrow().num_rows == 1
    assert len(list(OPEN_FILES.iterdir())) - before < 150


FORKED = """
import os, sys
from cordwood._core import _open_log as open_cached
path = sys.argv[1]
rows = lambda: open_cached(path).scan(columns=["offset"]).to_arrow().num_rows
assert rows() == 1500
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        os._exit(0 if rows() == 1500 and open_cached(path).locate(700).segment_base_offset == 400 else 3)
    children.append(child)
assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
assert rows() == 1500
print("fine")
"""


def test_a_cache_that_was_filled_before_a_fork_serves_parent_and_children(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    assert run(write_script(tmp_path, FORKED), PLAIN.path, env=script_environment).stdout.split() == ["fine"]


WITHOUT_SPARK = """
import sys
sys.modules["pyspark"] = None
import cordwood
import cordwood.spark
from cordwood.spark import errors
try:
    cordwood.spark.register
except ImportError as error:
    print(errors.__name__, "cordwood[spark]" in str(error))
"""


def test_without_pyspark_the_package_imports_and_says_what_to_install(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    done = run(write_script(tmp_path, WITHOUT_SPARK), env=script_environment)
    assert done.stdout.split() == ["cordwood.spark.errors", "True"]


LAZY = """
import sys
import cordwood
assert not [name for name in sys.modules if name.split(".")[0] in ("pyspark", "pandas", "pyarrow")], "too eager"
print("fine")
"""


def test_cordwood_itself_imports_neither_spark_nor_pandas(tmp_path: Path, script_environment: dict[str, str]) -> None:
    assert run(write_script(tmp_path, LAZY), env=script_environment).stdout.split() == ["fine"]


@pytest.mark.python_source
def test_the_reader_accepts_no_filters() -> None:
    """Spark keeps the plan of a pushed filter for all queries of a DataFrame; see `test_reuse.py`."""
    reader = source(PLAIN.path).reader(schema=struct("offset"))
    assert type(reader).pushFilters is DataSourceReader.pushFilters


def test_the_package_that_spark_discovers_has_the_source() -> None:
    import pyspark_cordwood

    assert pyspark_cordwood.DefaultSource is LogDataSource
    assert LogDataSource.name() == "cordwood"
    assert "pyspark_cordwood" in sys.modules


# ---------------------------------------------------------------- the text of errors


def test_an_error_of_a_reader_pickles_with_its_text_and_place() -> None:
    damaged = corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0"
    with pytest.raises(cw.CordwoodError) as raised:
        plan(damaged).rows()
    other = pickle.loads(pickle.dumps(raised.value))
    assert str(other) == str(raised.value)
    told = errors.parse(other)
    assert (told.code, told.topic, told.partition) == ("CORDWOOD_CORRUPT_BATCH", "tickets", 0)
    assert (told.segment, told.position) == (285, 2126)


@pytest.mark.python_source
def test_planning_opens_each_of_many_logs_once(tmp_path: Path, opened: Callable[[], int]) -> None:
    """More logs than the maximum of the cache."""
    for number in range(80):
        shutil.copytree(corpus.partition("15-one-record").path, tmp_path / f"many-{number}")
    reader = source(tmp_path).reader(struct("offset"))
    opened()
    splits = reader.partitions()
    assert opened() == 80
    assert sum(len(split.value.pieces) for split in splits) == 80


MANY_FILES = """
import resource, sys
from cordwood.spark.source import LogDataSource

resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
source = LogDataSource({"path": sys.argv[1], "columns": "offset"})
reader = source.reader(source.schema())
print(sum(batch.num_rows for split in reader.partitions() for batch in reader.read(split)))
"""


def test_many_logs_of_many_segments_stay_below_the_usual_limit_of_open_files(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    part = corpus.partition("20-many-segments")
    last = part.bases[24]

    def later(_: str, names: list[str]) -> list[str]:
        return [file for file in names if file[:20].isdigit() and int(file[:20]) > last]

    data = tmp_path / "data"
    for number in range(70):
        shutil.copytree(part.path, data / f"many-{number}", ignore=later)
    records = cw.Log(data / "many-0").scan(columns=["offset"]).to_arrow().num_rows
    assert records >= 25
    script = write_script(tmp_path, MANY_FILES)
    found = run(script, data, env=script_environment).stdout
    assert int(found) == 70 * records


def test_a_look_up_accepts_a_file_url_and_keeps_the_name_of_a_link(tmp_path: Path) -> None:
    link = tmp_path / "linked-7"
    link.symlink_to(corpus.partition("01-plain").path)
    for path in (str(link), f"file://{link}"):
        answers = locate(path, kind="arrow").udf.func(pa.array([20]))
        assert answers.to_pylist() == [
            {"segment_base_offset": 0, "batch_base_offset": 18, "position": 2904, "size": 995}
        ]
        with pytest.raises(Exception, match=r"^\[CORDWOOD_OFFSET_OUT_OF_RANGE\] linked-7: "):
            locate(path, kind="arrow", on_missing="error").udf.func(pa.array([-1]))
