"""`plan_kafka_load`: arguments, defaults from the data directory, what an operator sees.

The fields are compared with Kafka's in `tests/rust/inspect/kafka_load`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import cordwood as cw

GOLDEN = Path("tests/golden")
TORN = GOLDEN / "damaged/torn-middle-segment/tickets-0"


def state(path: Path) -> dict[str, tuple[int, int, bytes]]:
    entries = sorted(path.rglob("*"))
    return {
        str(e): (e.stat().st_mtime_ns, e.stat().st_ctime_ns, e.read_bytes() if e.is_file() else b"") for e in entries
    }


@pytest.fixture
def data_directory(tmp_path: Path) -> Path:
    shutil.copytree(TORN, tmp_path / "tickets-0")
    (tmp_path / "meta.properties").write_text("version=1\nbroker.id=1\n")
    return tmp_path


def test_an_unclean_shutdown_loses_everything_after_the_damage() -> None:
    config = cw.LogConfig(index_interval_bytes=512)
    load = cw.plan_kafka_load(TORN, clean=False, config=config)
    assert load.log is not None
    assert (load.log.log_end_offset, load.bytes_cut, load.is_clean) == (182, 22023, False)
    assert [(lost.start_offset, lost.end_offset, lost.is_hidden) for lost in load.lost_offsets] == [(182, 370, False)]
    assert [action.file for action in load.actions if action.kind == "cut"] == ["00000000000000000096.log"]
    deleted = [action.file for action in load.actions if action.kind == "delete_later"]
    assert [name for name in deleted if name.endswith(".log")] == [f"{base:020}.log" for base in (189, 285)]
    assert all(str(action).startswith(action.file) for action in load.actions)


def test_a_clean_shutdown_keeps_the_damage() -> None:
    load = cw.plan_kafka_load(TORN, clean=True)
    assert load.log is not None
    assert (load.log.log_end_offset, load.bytes_cut, load.lost_offsets) == (370, 0, [])


def test_records_are_hidden_where_the_log_end_falls_to_the_base_offset() -> None:
    load = cw.plan_kafka_load(GOLDEN / "damaged/torn-last-byte/tickets-0", clean=True)
    assert [(lost.start_offset, lost.end_offset, lost.is_hidden) for lost in load.lost_offsets] == [(285, 369, True)]
    assert [warning.kind for warning in load.warnings] == ["end_at_base"]


def test_a_failure_names_the_exception_and_the_file() -> None:
    load = cw.plan_kafka_load(GOLDEN / "damaged/epochs-count/elections-0", clean=True)
    assert load.log is None
    assert load.failure is not None
    assert (load.failure.kind, load.failure.file) == ("storage", "leader-epoch-checkpoint")
    assert load.failure.takes_directory_offline
    assert "offline" in str(load.failure)
    load = cw.plan_kafka_load(GOLDEN / "damaged/foreign-log/tickets-0", clean=True)
    assert load.failure is not None
    assert (load.failure.kind, load.failure.takes_directory_offline) == ("number_format", False)


def test_the_marker_and_the_checkpoints_of_the_data_directory_are_the_defaults(data_directory: Path) -> None:
    path = data_directory / "tickets-0"
    load = cw.plan_kafka_load(path)
    assert (load.closed_cleanly, load.recovery_point, load.log_start_offset) == (False, 0, 0)
    (data_directory / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":7}')
    (data_directory / "recovery-point-offset-checkpoint").write_text("0\n2\nother 0 9\ntickets 0 285\n")
    (data_directory / "log-start-offset-checkpoint").write_text("0\n1\ntickets 0 100\n")
    load = cw.plan_kafka_load(path)
    assert (load.closed_cleanly, load.recovery_point, load.log_start_offset) == (True, 285, 100)
    assert load.log is not None
    assert load.log.log_start_offset == 100
    # the damage is in a segment below the recovery point, which is not read
    load = cw.plan_kafka_load(path, clean=False)
    assert load.log is not None
    assert (load.log.log_end_offset, load.log.recovery_point) == (370, 285)
    load = cw.plan_kafka_load(path, clean=False, recovery_point=0, log_start_offset=0)
    assert load.log is not None
    assert load.log.log_end_offset == 182
    # Kafka ignores a damaged checkpoint
    (data_directory / "recovery-point-offset-checkpoint").write_text("0\n5\n")
    assert cw.plan_kafka_load(path).recovery_point == 0


def test_without_a_data_directory_clean_must_be_given(tmp_path: Path) -> None:
    shutil.copytree(TORN, tmp_path / "tickets-0")
    with pytest.raises(cw.ConfigError, match=r"clean: .*data directory"):
        cw.plan_kafka_load(tmp_path / "tickets-0")
    with pytest.raises(cw.LogNotFoundError):
        cw.plan_kafka_load(tmp_path / "missing-0", clean=True)


def test_nothing_is_changed(data_directory: Path) -> None:
    path = data_directory / "tickets-0"
    before = state(data_directory)
    for clean in (True, False):
        cw.plan_kafka_load(path, clean=clean)
    assert state(data_directory) == before


def test_results_are_values() -> None:
    plans = [cw.plan_kafka_load(TORN, clean=False) for _ in range(2)]
    assert plans[0] == plans[1]
    assert hash(plans[0]) == hash(plans[1])
    assert "log_end_offset=182" in repr(plans[0])
