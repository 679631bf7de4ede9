"""Missing offsets in a log that was truncated: only those that a truncation left are no loss."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from batches import name

import cordwood as cw


def write(path: Path, batches: int = 10) -> cw.LogWriter:
    """A writer of a log with batches of 20 records."""
    writer = cw.LogWriter(path)
    for number in range(batches):
        writer.append_many([b"%d.%d" % (number, n) for n in range(20)])
    return writer


def at_a_batch(writer: cw.LogWriter) -> None:
    writer.append("more")
    writer.truncate_to(200)


def inside_a_batch(writer: cw.LogWriter) -> None:
    """The batch of the offsets 180 to 199 is removed, and the log goes on at 190."""
    writer.truncate_to(190)
    writer.append_many([b"x"] * 10)


def of_everything(writer: cw.LogWriter) -> None:
    writer.truncate_fully_and_start_at(0)
    for number in range(10):
        writer.append_many([b"%d" % number] * 20)


TRUNCATIONS: dict[Callable[[cw.LogWriter], None], list[int]] = {
    at_a_batch: list(range(200)),
    inside_a_batch: [*range(180), *range(190, 200)],
    of_everything: list(range(200)),
}
TRUNCATED = pytest.mark.parametrize("truncate", TRUNCATIONS)


def without_batch(path: Path, base_offset: int) -> None:
    """Remove a batch from the file, and what refers to its bytes."""
    log = path / name(0)
    [row] = [row for row in cw.Log(path).batches().to_arrow().to_pylist() if row["base_offset"] == base_offset]
    content = log.read_bytes()
    log.write_bytes(content[: row["position"]] + content[row["position"] + row["size"] :])
    for index in path.glob("*.*index"):
        index.unlink()


def read(path: Path) -> tuple[list[int], int]:
    """The offsets, and the number of gaps that are losses."""
    scan = cw.Log(path).scan(columns=["offset"])
    return scan.to_arrow()["offset"].to_pylist(), scan.stats.lost_gaps


def gaps(path: Path) -> list[tuple[str, int | None]]:
    return [
        (finding.severity, finding.start_offset) for finding in cw.verify(path).findings if finding.code == "offset_gap"
    ]


@TRUNCATED
@pytest.mark.parametrize("is_closed", [False, True])
def test_a_truncation_is_no_loss_and_hides_none(
    tmp_path: Path, truncate: Callable[[cw.LogWriter], None], is_closed: bool
) -> None:
    path = tmp_path / "orders-0"
    writer = write(tmp_path / "live-0")
    truncate(writer)
    if not is_closed:
        shutil.copytree(writer.path, path)
    writer.close()
    if is_closed:
        shutil.copytree(writer.path, path)
    expected = TRUNCATIONS[truncate]
    assert read(path) == (expected, 0)
    assert "warning" not in {severity for severity, _ in gaps(path)}

    without_batch(path, 80)
    assert read(path) == ([offset for offset in expected if not 80 <= offset < 100], 1)
    assert ("warning", 80) in gaps(path)


def test_each_truncation_is_known_after_the_next_opening(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    write(path).close()
    for target in (190, 150, 145):
        with cw.LogWriter(path) as writer:
            writer.truncate_to(target)
            writer.append_many([b"x"] * 10)
    offsets, lost = read(path)
    assert lost == 0
    assert offsets == [*range(140), *range(145, 155)]
    assert "warning" not in {severity for severity, _ in gaps(path)}


def test_a_reader_that_refreshes_knows_a_new_truncation(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with write(path) as writer:
        writer.append("more")
        writer.truncate_to(200)
        log = cw.Log(path)
        assert log.scan().to_arrow().num_rows == 200
        inside_a_batch(writer)
        scan = log.refresh().scan()
        assert scan.to_arrow().num_rows == 190
        assert scan.stats.lost_gaps == 0


@pytest.mark.parametrize("content", [None, b"\x01" * 12])
def test_without_a_valid_list_any_gap_may_be_of_a_truncation(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "orders-0"
    with write(path) as writer:
        at_a_batch(writer)
    gaps_file = path / ".cordwood.gaps"
    gaps_file.unlink()
    if content is not None:
        gaps_file.write_bytes(content)
    without_batch(path, 80)
    assert read(path)[1] == 0


def test_a_log_that_was_truncated_before_it_had_the_list_gets_none(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with write(path) as writer:
        inside_a_batch(writer)
    (path / ".cordwood.gaps").unlink()
    with cw.LogWriter(path) as writer:
        writer.append("more")
        writer.truncate_to(200)
    assert not (path / ".cordwood.gaps").exists()
    assert read(path)[1] == 0


@pytest.mark.parametrize("left", [b"\x00", b"\x00" * 11])
def test_a_part_of_an_entry_is_that_of_a_truncation_that_had_not_begun(tmp_path: Path, left: bytes) -> None:
    path = tmp_path / "orders-0"
    with write(path) as writer:
        at_a_batch(writer)
    with (path / ".cordwood.gaps").open("ab") as file:
        file.write(left)
    with cw.LogWriter(path) as writer:
        inside_a_batch(writer)
    assert read(path) == (TRUNCATIONS[inside_a_batch], 0)
    without_batch(path, 80)
    assert read(path)[1] == 1
