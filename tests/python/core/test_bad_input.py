"""Invalid values for every public call: the error explains them, and nothing crashes."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import corpus
import numpy as np
import pandas as pd
import pytest
from case_names import plain_repr
from scripts import BECOME_NOBODY, run, write_script

import cordwood as cw

PATH = corpus.partition("01-small").path
WRONG_TYPE = (TypeError,)
TOO_BIG = (OverflowError, TypeError, ValueError, cw.OffsetOutOfRangeError)


@pytest.fixture(scope="module")
def log() -> cw.Log:
    return cw.Log(PATH)


@pytest.mark.parametrize("path", [3, None, 1.5, [], object()], ids=plain_repr)
def test_a_path_of_another_type(path: Any) -> None:
    for opener in (cw.Log, cw.LogDir, cw.OffsetIndex, cw.TimeIndex, cw.TransactionIndex):
        with pytest.raises(TypeError):
            opener(path)


def test_a_path_may_be_text_or_a_path_object() -> None:
    assert cw.Log(str(PATH)).log_end_offset == cw.Log(Path(PATH)).log_end_offset == 370


@pytest.mark.parametrize("opener", [cw.Log, cw.LogDir, cw.OffsetIndex, cw.TimeIndex, cw.TransactionIndex])
def test_a_missing_path(tmp_path: Path, opener: Callable[..., Any]) -> None:
    missing = tmp_path / "nothing-0"
    with pytest.raises(cw.LogNotFoundError) as raised:
        opener(missing)
    assert isinstance(raised.value, FileNotFoundError)
    assert str(missing) in str(raised.value)
    assert not missing.exists()


@pytest.mark.parametrize("opener", [cw.Log, cw.LogDir])
def test_a_file_in_place_of_a_directory(tmp_path: Path, opener: Callable[..., Any]) -> None:
    file = tmp_path / "file-0"
    file.write_bytes(b"x")
    with pytest.raises((cw.CordwoodError, OSError)) as raised:
        opener(file)
    assert str(file) in str(raised.value)


@pytest.mark.parametrize("opener", [cw.OffsetIndex, cw.TimeIndex, cw.TransactionIndex])
def test_a_directory_in_place_of_a_file(tmp_path: Path, opener: Callable[..., Any]) -> None:
    with pytest.raises((cw.CordwoodError, OSError)):
        opener(tmp_path, base_offset=0)


def test_a_directory_without_a_segment_is_not_a_log(tmp_path: Path) -> None:
    """Kafka creates a segment there; a reader does not write, and has nothing to read."""
    with pytest.raises(cw.LogNotFoundError):
        cw.Log(tmp_path)


def make_odd(kind: str, path: Path) -> None:
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        with socket.socket(socket.AF_UNIX) as server:
            here = os.open(path.parent, os.O_RDONLY)
            try:
                server.bind(f"/proc/self/fd/{here}/{path.name}")
            finally:
                os.close(here)


ODD = ["directory", "fifo", "socket"]


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("base", [5, 370, 1000])
def test_a_special_file_next_to_the_segments_is_ignored_with_a_warning(copied: Any, kind: str, base: int) -> None:
    path = copied(PATH)
    odd = path / f"{base:020d}.log"
    make_odd(kind, odd)
    log = cw.Log(path)
    assert log.scan(columns=["offset"]).to_arrow().num_rows == 370
    assert log.log_end_offset == 370
    assert any(odd.name in warning for warning in log.warnings)


@pytest.mark.parametrize("kind", ODD)
def test_a_special_file_instead_of_an_index_is_ignored_with_a_warning(copied: Any, kind: str) -> None:
    path = copied(PATH)
    odd = next(path.glob("*.index"))
    odd.unlink()
    make_odd(kind, odd)
    log = cw.Log(path)
    assert [r.offset for r in log.records(start_offset=100)] == list(range(100, 370))
    assert log.locate(300) is not None
    assert any(odd.name in warning for warning in log.warnings)


@pytest.mark.parametrize("kind", ODD)
def test_a_special_file_instead_of_the_only_segment_is_not_a_log(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "odd-0"
    path.mkdir()
    make_odd(kind, path / "00000000000000000000.log")
    with pytest.raises(cw.LogNotFoundError):
        cw.Log(path)


def test_a_socket_or_pipe_among_the_files_does_not_hang(copied: Any) -> None:
    path = copied(PATH)
    os.mkfifo(path / "00000000000000000500.index")
    os.mkfifo(path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(path, os.O_RDONLY)
        try:
            server.bind(f"/proc/self/fd/{here}/socket")
        finally:
            os.close(here)
        assert cw.Log(path).scan(columns=["offset"]).to_arrow().num_rows == 370


def test_missing_permission_is_an_error_of_the_system(script_environment: dict[str, str]) -> None:
    """As an unprivileged user: the directory may be looked up but not listed."""
    top = Path(tempfile.mkdtemp(prefix="cordwood-"))
    top.chmod(0o755)
    path = top / "closed-0"
    shutil.copytree(PATH, path)
    path.chmod(0)
    script = write_script(
        top,
        "import sys\nimport cordwood as cw\n"
        "try:\n    cw.Log('/nowhere')\nexcept OSError:\n    pass\n"
        + BECOME_NOBODY
        + "try:\n    cw.Log(sys.argv[1]).scan().to_arrow()\n"
        + "except OSError as error:\n    print(isinstance(error, PermissionError) or 'denied' in str(error))\n",
    )
    try:
        assert run(script, path, env=script_environment).stdout.split() == ["True"]
    finally:
        path.chmod(0o755)
        shutil.rmtree(top)


@pytest.mark.parametrize("offset", ["5", None, b"5", [5], 5.0, 5.5, object()], ids=plain_repr)
def test_offsets_of_another_type(log: cw.Log, offset: Any) -> None:
    with pytest.raises(WRONG_TYPE):
        log.locate(offset)
    with pytest.raises(WRONG_TYPE):
        log.segments.floor(offset)
    if offset is not None:
        for name in ("start_offset", "end_offset"):
            with pytest.raises(WRONG_TYPE):
                log.scan(**{name: offset}).to_arrow()
            with pytest.raises(WRONG_TYPE):
                list(log.records(**{name: offset}))
            with pytest.raises(WRONG_TYPE):
                log.plan(1000, **{name: offset})


@pytest.mark.parametrize("offset", [2**63, 2**64, -(2**63) - 1, 10**30], ids=plain_repr)
def test_offsets_beyond_64_bits(log: cw.Log, offset: int) -> None:
    for call in (
        lambda: log.locate(offset),
        lambda: log.scan(start_offset=offset).to_arrow(),
        lambda: log.offset_for_time(offset),
        lambda: log.segments.floor(offset),
    ):
        with pytest.raises(TOO_BIG):
            call()
    assert log.locate_many([0, offset])["position"].to_pylist() == [0, None]
    assert log.offsets_for_times([0, offset])["offset"].to_pylist() == [0, None]


@pytest.mark.parametrize("offset", [-1, -5, -(2**63), 370, 371, 2**63 - 1])
def test_offsets_outside_the_log(log: cw.Log, offset: int) -> None:
    with pytest.raises(cw.OffsetOutOfRangeError) as raised:
        log.locate(offset)
    assert raised.value.offset == offset
    assert str(offset) in str(raised.value)
    assert log.locate_many([offset]).to_pylist()[0]["position"] is None


def test_a_negative_end_is_refused(log: cw.Log) -> None:
    with pytest.raises((ValueError, cw.OffsetOutOfRangeError)):
        log.scan(start_offset=0, end_offset=-1).to_arrow()
    with pytest.raises((ValueError, cw.OffsetOutOfRangeError)):
        log.scan(start_offset=-3, end_offset=5).to_arrow()


@pytest.mark.parametrize("name", ["start_time", "end_time"])
def test_negative_times_and_naive_datetimes(log: cw.Log, name: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        log.scan(**{name: datetime(2024, 5, 1)}).to_arrow()  # noqa: DTZ001
    for wrong in (b"1", 1.5):
        with pytest.raises(TypeError):
            log.scan(**{name: wrong}).to_arrow()


def test_a_naive_datetime_is_refused_by_name(log: cw.Log) -> None:
    """An assumed zone could be wrong by hours."""
    with pytest.raises((ValueError, TypeError), match=r"(?i)naive|aware|time ?zone|tzinfo"):
        log.offset_for_time(datetime(2024, 5, 1))  # noqa: DTZ001
    with pytest.raises((ValueError, TypeError)):
        log.offsets_for_times([datetime(2024, 5, 1)])  # noqa: DTZ001


def test_a_time_that_is_missing_in_pandas_is_refused_by_name(log: cw.Log) -> None:
    with pytest.raises(cw.ConfigError, match=r"^timestamp: expected .*, found NaT"):
        log.offset_for_time(pd.NaT)
    with pytest.raises(cw.ConfigError, match=r"^start_time: expected .*, found NaT"):
        log.scan(start_time=pd.NaT)


@pytest.mark.parametrize("target", [None, 5.0, b"", [1]], ids=plain_repr)
def test_times_of_another_type(log: cw.Log, target: Any) -> None:
    with pytest.raises(TypeError):
        log.offset_for_time(target)


@pytest.mark.parametrize("targets", [5, None, "12", [1, "2"], [1.5], object()], ids=plain_repr)
def test_many_targets_that_are_not_integers(log: cw.Log, targets: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        log.locate_many(targets)
    with pytest.raises((TypeError, ValueError)):
        log.offsets_for_times(targets)


def test_no_targets_give_no_rows(log: cw.Log) -> None:
    assert log.locate_many([]).num_rows == 0
    assert log.offsets_for_times([]).num_rows == 0


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [("offsett", "offset"), ("timestmap", "timestamp"), ("leaderepoch", "leader_epoch"), ("Value", "value")],
)
def test_an_unknown_column_is_named_with_its_nearest(log: cw.Log, wrong: str, nearest: str) -> None:
    with pytest.raises(cw.ConfigError) as raised:
        log.scan(columns=["key", wrong]).to_arrow()
    assert wrong in str(raised.value)
    assert nearest in str(raised.value).replace(wrong, "")
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize("columns", ["offset", 5, [5], [None]], ids=plain_repr)
def test_columns_of_another_type(log: cw.Log, columns: Any) -> None:
    """A string is a sequence of letters in Python: it is refused, or accepted as the name of one column."""
    try:
        names = log.scan(columns=columns).to_arrow().column_names
    except (TypeError, ValueError):
        return
    assert columns == "offset"
    assert names == ["offset"]


@pytest.mark.parametrize("wrong", ["nope", "", "x", "colour", "a name like no other"])
def test_no_column_is_suggested_for_a_name_without_a_similar_one(log: cw.Log, wrong: str) -> None:
    with pytest.raises(cw.ConfigError, match=r"^columns: expected one of topic, ") as raised:
        log.scan(columns=[wrong])
    assert "did you mean" not in str(raised.value)


def test_the_same_column_twice_is_refused(log: cw.Log) -> None:
    with pytest.raises(ValueError):
        log.scan(columns=["offset", "offset"]).to_arrow()


@pytest.mark.parametrize("part", corpus.partitions(), ids=str)
def test_without_columns_the_rows_are_counted(part: corpus.Partition) -> None:
    """As an Arrow table without columns has a number of rows."""
    table = cw.Log(part.path).scan(columns=[]).to_arrow()
    assert (table.num_columns, table.num_rows) == (0, len(corpus.visible(part)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("isolation_level", "read_comitted"),
        ("isolation_level", ""),
        ("on_damage", "ignore"),
        ("on_damage", "RAISE"),
        ("header_keys", "latin1"),
        ("timestamp_unit", "ns"),
        ("timestamp_unit", "s"),
    ],
)
def test_an_invalid_choice_is_a_config_error_that_names_it(log: cw.Log, name: str, value: str) -> None:
    with pytest.raises(cw.ConfigError) as raised:
        log.scan(**{name: value}).to_arrow()
    assert value in str(raised.value)


@pytest.mark.parametrize("name", ["isolation_level", "on_damage", "header_keys", "timestamp_unit"])
def test_choices_of_another_type(log: cw.Log, name: str) -> None:
    for value in (3, None, b"raise"):
        with pytest.raises((TypeError, cw.ConfigError)):
            log.scan(**{name: value}).to_arrow()


def test_an_unknown_way_of_reading_files() -> None:
    for io in ("fast", "", "MMAP"):
        with pytest.raises(cw.ConfigError):
            cw.Log(PATH, io=io)


@pytest.mark.parametrize("name", ["max_rows", "max_bytes", "threads"])
def test_invalid_sizes(log: cw.Log, name: str) -> None:
    for value in (0, -1, -(2**40)):
        with pytest.raises((ValueError, OverflowError)):
            log.scan(**{name: value}).to_arrow()
    for wrong in ("1", 1.5, None):
        with pytest.raises(TypeError):
            log.scan(**{name: wrong}).to_arrow()


def test_invalid_splits(log: cw.Log) -> None:
    for value in (0, -1):
        with pytest.raises((ValueError, OverflowError)):
            log.plan(value)
    with pytest.raises(TypeError):
        log.plan("1000")
    for wrong in (3, "0-10", (0, 10)):
        with pytest.raises(TypeError):
            log.scan(split=wrong).to_arrow()


def test_an_unknown_argument_is_a_type_error(log: cw.Log) -> None:
    for call in (log.scan, log.records, log.batches):
        with pytest.raises(TypeError):
            call(strat_offset=3)
    with pytest.raises(TypeError):
        log.scan(5)
    with pytest.raises(TypeError):
        cw.Log(PATH, "mmap")


def test_invalid_partitions_and_limits() -> None:
    for arguments in (
        {"partition": "0"},
        {"topic": 3},
        {"log_start_offset": "0"},
        {"log_start_offset": 1.5},
        {"max_open_files": "8"},
    ):
        with pytest.raises(TypeError):
            cw.Log(PATH, **arguments)
    with pytest.raises((ValueError, OverflowError)):
        cw.Log(PATH, max_open_files=-1)


def test_classes_of_results_cannot_be_instantiated() -> None:
    log = cw.Log(PATH)
    for made in (log.locate(0), log.scan(), log.plan(1000)[0], log.segments[0]):
        with pytest.raises((TypeError, ValueError)):
            type(made)()


def test_a_log_cannot_be_changed_from_outside(log: cw.Log) -> None:
    for name in ("path", "topic", "log_start_offset", "log_end_offset", "warnings"):
        with pytest.raises(AttributeError):
            setattr(log, name, 5)
    with pytest.raises(AttributeError):
        log.new_attribute = 1
    log.warnings.append("mine")
    assert "mine" not in log.warnings


def test_segments_are_a_sequence_with_its_errors(log: cw.Log) -> None:
    for place in (4, -5, 100):
        with pytest.raises(IndexError):
            log.segments[place]
    with pytest.raises(TypeError):
        log.segments["0"]
    assert [s.base_offset for s in log.segments] == [s.base_offset for s in list(log.segments)] == [0, 96, 189, 285]
    with pytest.raises(ValueError):
        log.segments.between(10, 5)


def test_each_time_of_a_list_means_what_it_means_alone() -> None:
    """pyarrow gives all items of a list the type of the first ones: an integer beside a datetime would be µs."""
    log = cw.Log(corpus.partition("01-plain").path)
    [last] = log.records(start_offset=log.log_end_offset - 1)
    time = datetime.fromtimestamp(last.timestamp / 1000, UTC)
    mixed: list[Any] = [time, last.timestamp, None, 0, 2**70]
    alone = [log.offset_for_time(item) for item in (time, last.timestamp, 0)]
    expected = [found and found.offset for found in (alone[0], alone[1], None, alone[2], None)]
    for targets in (mixed, tuple(mixed), iter(mixed), np.array(mixed, dtype=object), pd.Series(mixed, dtype=object)):
        assert log.offsets_for_times(targets)["offset"].to_pylist() == expected
    for wrong in ([time, 5.5], [time, datetime(2024, 5, 1)], [time, True]):  # noqa: DTZ001
        with pytest.raises((TypeError, cw.ConfigError)):
            log.offsets_for_times(wrong)
