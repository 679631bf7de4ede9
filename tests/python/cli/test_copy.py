"""`cordwood copy` and `cordwood carve`: ranges of times, copies that are continued, destinations."""

from __future__ import annotations

import time
from pathlib import Path

import corpus
import pytest
from commands import cordwood

import cordwood as cw

SMALL = corpus.partition("01-small").path


def recent(path: Path) -> Path:
    """A log with a record of three hours ago, and one of now."""
    now = time.time_ns() // 1_000_000
    with cw.LogWriter(path) as writer:
        writer.append(b"old", timestamp=now - 3 * 3_600_000)
        writer.append(b"new", timestamp=now)
    return path


def begun(source: Path, destination: Path, **times: int) -> None:
    """Begin a copy, and stop before it is complete."""

    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cw.copy(source, destination, progress=stop, **times)
    assert list(destination.rglob(".cordwood.copy"))


@pytest.mark.parametrize("is_directory", [False, True])
def test_a_copy_of_a_relative_range_is_continued_by_the_times_that_the_error_names(
    tmp_path: Path, is_directory: bool
) -> None:
    (tmp_path / "data").mkdir()
    partition = recent(tmp_path / "data" / "orders-0")
    (tmp_path / "data" / "meta.properties").write_text("version=1\nbroker.id=1\n")
    source = tmp_path / "data" if is_directory else partition
    start = time.time_ns() // 1_000_000 - 7_200_000
    begun(source, tmp_path / "copy", start_time=start)
    # the words mean another time now
    done = cordwood("copy", source, tmp_path / "copy", "--since", "-2h")
    assert done.returncode == 2
    assert f"the unfinished copy of another range (start time {start})" in done.stderr.decode()
    assert cordwood("copy", source, tmp_path / "copy", "--since", str(start)).returncode == 0
    log = cw.Log(tmp_path / "copy" / "orders-0" if is_directory else tmp_path / "copy")
    assert [record.value for record in log.records()] == [b"new"]
    assert not list((tmp_path / "copy").rglob(".cordwood.copy"))


def test_a_complete_copy_of_a_relative_range_says_why_it_is_another_range_now(tmp_path: Path) -> None:
    path, now = tmp_path / "orders-0", time.time_ns() // 1_000_000
    with cw.LogWriter(path) as writer:
        writer.append(b"old", timestamp=now - 5_400_000)
        writer.append(b"new", timestamp=now)
    copy = ["copy", path, tmp_path / "copy"]
    for _ in range(2):
        assert cordwood(*copy, "--since", "-2h").returncode == 0
    # as the first range is after an hour
    done = cordwood(*copy, "--since", "-1h")
    assert done.returncode == 2
    assert "--since -1h is another time at each call: give the time of the first one" in done.stderr.decode()
    done = cordwood(*copy, "--since", str(now - 3_600_000))
    assert done.returncode == 2
    assert "at each call" not in done.stderr.decode()
    assert len(list(cw.Log(tmp_path / "copy").records())) == 2


def test_another_range_is_refused(tmp_path: Path) -> None:
    source = recent(tmp_path / "orders-0")
    begun(source, tmp_path / "copy", start_time=1_700_000_000_000)
    for words in (["--since", "2024-05-01"], ["--until", "now"], []):
        done = cordwood("copy", source, tmp_path / "copy", *words)
        assert done.returncode == 2
        assert "the unfinished copy of another range (start time 1700000000000)" in done.stderr.decode()
    # what it names continues it
    assert cordwood("copy", source, tmp_path / "copy", "--since", "1700000000000").returncode == 0


def test_carve_writes_nothing_into_its_source(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.mkdir()
    (image / "raw").write_bytes(next(SMALL.glob("*285.log")).read_bytes())
    (tmp_path / "link").symlink_to(image)
    for into in (image / "found", image, tmp_path / "link" / "found"):
        done = cordwood("carve", image, "--into", into)
        assert (done.returncode, done.stdout) == (2, b"")
        assert "--into: expected " in done.stderr.decode()
    assert [path.name for path in image.iterdir()] == ["raw"]
    assert cordwood("carve", image / "raw", "--into", image / "found").returncode == 0


def test_a_copy_of_a_compacted_partition_has_the_findings_of_its_source(tmp_path: Path) -> None:
    """The cleaner's checkpoint is in the data directory, and the copy of one partition has none."""
    source = corpus.GOLDEN / "16-data-dir" / "rivers.compact-0"
    assert cw.verify(source).findings == []
    cw.copy(source, tmp_path / "rivers.compact-0")
    assert cw.verify(tmp_path / "rivers.compact-0").findings == []
    again = cw.copy(tmp_path / "rivers.compact-0", tmp_path / "again")
    assert (cw.verify(again.path).findings, again.warnings) == ([], [])
    # run again, it compares
    assert cw.copy(source, tmp_path / "rivers.compact-0").bytes_written == 0
    plain = cw.copy(SMALL, tmp_path / "plain-0")
    assert not Path(plain.path, ".cordwood.compacted").exists()


def test_carve_ends_alike_in_both_formats_if_it_finds_nothing(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(b"x" * 5000)
    for words in ([], ["--json"]):
        assert cordwood("carve", tmp_path / "raw", *words).returncode == 1
    done = cordwood("carve", next(SMALL.glob("*285.log")), "--min-records", "100000")
    assert (done.returncode, b"only runs of fewer than 100000 records, 1," in done.stderr) == (1, True)
