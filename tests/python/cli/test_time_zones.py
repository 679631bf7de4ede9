"""The option `--tz` of the commands that take times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import ok, outputs

import cordwood as cw

# 2024-05-01T10:00Z
TEN = 1_714_557_600_000
BERLIN = ("--tz", "Europe/Berlin")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log with a record each hour from ten to two, UTC; each segment has one."""
    place = tmp_path / "orders-0"
    with cw.LogWriter(place, config=cw.LogConfig(cleanup_policy="compact,delete")) as writer:
        for hour in range(5):
            writer.append(f"{hour}", key="k", timestamp=TEN + hour * 3_600_000)
            writer.roll()
    return place


def test_find_takes_and_shows_local_times(path: Path) -> None:
    out = ok("find", path, "--time", "2024-05-01 13:00", *BERLIN)
    assert "2024-05-01T13:00:00.000+02:00" in out
    assert json.loads(ok("find", path, "--time", "2024-05-01 13:00", *BERLIN, "--json"))["offset"] == 1
    table = ok("find", path.parent, "--time", "2024-05-01 13:00", *BERLIN)
    assert table.count("2024-05-01T13:00:00.000+02:00") == 2
    code, _, error = outputs("find", path, "--time", "2024-05-02 13:00", *BERLIN)
    assert (code, "at or after 2024-05-02T13:00:00.000+02:00" in error) == (1, True)


def test_copy_takes_local_times(path: Path, tmp_path: Path) -> None:
    ok("copy", path, tmp_path / "part-0", "--since", "2024-05-01 13:00", "--until", "2024-05-01 15:00", *BERLIN)
    assert [record.value for record in cw.Log(tmp_path / "part-0").records()] == [b"1", b"2"]


def test_retention_takes_and_shows_local_times(path: Path) -> None:
    hour = ("--set", "retention.ms=3600000", "--set", "cleanup.policy=delete")
    out = ok("apply-retention", path, *hour, "--now", "2024-05-01 14:30", *BERLIN)
    assert "2024-05-01T13:00:00.000+02:00" in out
    assert "2024-05-01T14:00:00.000+02:00" not in out


def test_compaction_takes_local_times(path: Path) -> None:
    """Records that are older than an hour are compacted."""
    young = ("--set", "min.compaction.lag.ms=3600000", "--set", "min.cleanable.dirty.ratio=0")
    document = json.loads(ok("compact", path, *young, "--now", "2024-05-01 15:30", *BERLIN, "--json"))
    assert document["passes"][0]["first_uncleanable_offset"] == 3


@pytest.mark.parametrize(
    "words",
    [("find", "--time"), ("copy", "TO", "--since"), ("apply-retention", "--now"), ("compact", "--now")],
    ids=lambda words: words[0],
)
def test_a_time_without_a_zone_needs_the_option(path: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    command, *rest = [str(tmp_path / "to") if word == "TO" else word for word in words]
    code, _, error = outputs(command, path, *rest, "2024-05-01 13:00")
    assert (code, "or give --tz" in error) == (2, True)
    code, _, error = outputs(command, path, *rest, "2024-05-01 13:00", "--tz", "Mars/Base")
    assert (code, "--tz: expected the name of a time zone" in error) == (2, True)
