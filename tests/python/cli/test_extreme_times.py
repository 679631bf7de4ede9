"""Records with the smallest and largest timestamps that 64 bits hold, in every command that prints or groups times."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from batches import GZIP, NONE, Rec, batch, write_partition
from commands import cordwood
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import cordwood as cw

pytestmark = pytest.mark.long

LEAST, MOST = -(2**63), 2**63 - 1
DAY = 86_400_000
PERIODS = {"minute": 60_000, "hour": 3_600_000, "day": DAY}
# the limits of 64 bits, of 64 bits in µs, of the years 1 and 9999
LIMITS = [LEAST, MOST, LEAST // 1000, MOST // 1000, -62_135_596_800_000, 253_402_300_799_999, 0]
TIMES = st.one_of(
    st.builds(lambda limit, by: min(max(limit + by, LEAST), MOST), st.sampled_from(LIMITS), st.integers(-DAY, DAY)),
    st.sampled_from(LIMITS),
    st.integers(LEAST, MOST),
)
# words for a partition
COMMANDS = [
    ["cat"],
    ["cat", "--format", "csv"],
    ["cat", "--format", "csv", "--tz", "Asia/Kathmandu"],
    ["cat", "--format", "csv", "--tz", "America/New_York"],
    ["find", "--time", "0"],
    ["find", "--time", str(MOST)],
    ["find", "--offset", "0"],
    ["ls"],
    ["ls", "--json"],
    ["dump", "--deep-iteration"],
    ["verify", "--deep"],
    ["verify", "--as-kafka", "--unclean", "--explain"],
    ["producers"],
    ["transactions"],
    ["reindex"],
    ["recover"],
    ["repair"],
    ["apply-retention"],
    ["compact"],
    *(
        ["count", "--by", period, *zone]
        for period in ("minute", "hour", "day")
        for zone in ([], ["--tz", "Asia/Tokyo"])
    ),
]


def partition(folder: str, times: Iterable[int]) -> Path:
    path = Path(folder, "times-0")
    raws = [
        batch(n, [Rec(b"v", timestamp=time)], base_timestamp=time, max_timestamp=time, codec=GZIP if n % 2 else NONE)
        for n, time in enumerate(times)
    ]
    write_partition(path, [(0, raws)])
    return path


def run(*words: object) -> tuple[int, str, str]:
    done = cordwood(*words)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@settings(max_examples=4, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(times=LIMITS)
@given(times=st.lists(TIMES, min_size=1, max_size=4))
def test_every_command_ends(words: list[str], times: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        code, out, error = run(words[0], partition(folder, times), *words[1:])
        # 1: nothing is found, or a finding; 2: there is no such file
        assert code in (0, 1, 2), error
        assert "defect" not in error + out
        assert "Traceback" not in error


@settings(max_examples=30, derandomize=True, deadline=None)
@given(times=st.lists(TIMES, min_size=1, max_size=6), period=st.sampled_from([*PERIODS]))
def test_every_record_is_counted_in_a_period_of_its_time(times: list[int], period: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = partition(folder, times)
        code, out, error = run("count", path, "--by", period, "--json")
        assert code == 0, error
        groups = json.loads(out)["groups"]
        length = PERIODS[period]
        starts = {None if time == -1 else max(time - time % length, LEAST) for time in times}
        assert len(groups) == len(starts)
        assert sum(group["records"] for group in groups) == len(times)
        assert [record.timestamp for record in cw.Log(path).records()] == times


@pytest.mark.parametrize(
    "times",
    [
        pytest.param([*range(1_700_000_000_000, 1_700_000_000_050), 253_402_214_400_000], id="one in 9999"),
        pytest.param([1_700_000_000_000, *LIMITS], id="all limits"),
        *(
            pytest.param(times, id=name, marks=pytest.mark.long)
            for name, times in {
                "9999-12-31": [253_402_214_400_000],
                "the last ms": [253_402_300_799_999] * 3,
                "the largest": [MOST],
                "the smallest": [LEAST, 0],
                "one in µs": [*range(1_700_000_000_000, 1_700_000_000_050), 1_700_000_000_000_000],
                "past the end": [253_370_764_800_000 + DAY * n for n in range(400)],
            }.items()
        ),
    ],
)
def test_a_report_has_a_page(tmp_path: Path, times: list[int]) -> None:
    pytest.importorskip("matplotlib")
    page = tmp_path / "page.html"
    code, _, error = run("report", partition(str(tmp_path), times), "-o", page)
    assert code == 0, error
    assert page.read_text().count("<svg") > 3
