"""The command line prints the warnings of the logs that it reads."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpus
import pytest
from core.test_damaged import BROKEN, Damage
from corpus import Partition
from scripts import Command

import cordwood as cw
from cli.test_words import PYTHONS

PLAIN = corpus.partition("01-plain")
MIDDLE = 807
assert MIDDLE in PLAIN.bases[1:-1]


def without_a_segment(path: Path) -> None:
    for file in path.glob(f"{MIDDLE:020d}.*"):
        file.unlink()


def cut_at_a_batch(path: Path) -> None:
    """Remove only the last batch, and the indexes that refer to it."""
    last = max((b for b in corpus.batches(PLAIN) if b["segment"] == MIDDLE), key=lambda b: int(b["position"]))
    file = path / f"{MIDDLE:020d}.log"
    with file.open("r+b") as log:
        log.truncate(last["position"])
    for suffix in (".index", ".timeindex"):
        file.with_suffix(suffix).unlink()


HARMS = [without_a_segment, cut_at_a_batch]


def missing(path: Path) -> range:
    """The missing offsets, from Kafka's dump of the whole log."""
    if not (path / f"{MIDDLE:020d}.log").exists():
        return range(MIDDLE, PLAIN.bases[PLAIN.bases.index(MIDDLE) + 1])
    last = max((b for b in corpus.batches(PLAIN) if b["segment"] == MIDDLE), key=lambda b: int(b["position"]))
    return range(last["baseOffset"], last["lastOffset"] + 1)


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--format", "csv"),
        ("--columns", "offset,magic"),
        ("--on-damage", "skip"),
        ("--on-damage", "report"),
        ("--isolation", "read_committed"),
        ("-o", "{tmp}/out.parquet"),
    ],
    ids=" ".join,
)
def test_cat_names_offsets_that_no_segment_has(
    command: Command, copied: Any, tmp_path: Path, harm: Callable[[Path], None], options: tuple[str, ...]
) -> None:
    path = copied(PLAIN.path)
    harm(path)
    gone = missing(path)
    code, _, error = command("cat", path, *(option.replace("{tmp}", str(tmp_path)) for option in options))
    assert code == 0
    assert error.count("\n") == 1
    assert error.startswith("warning: ")
    assert f"offsets {gone.start} to {gone.stop - 1} are missing" in error
    assert not PYTHONS.search(error)


@pytest.mark.parametrize("part", corpus.partitions(), ids=str)
def test_cat_writes_the_warnings_of_the_log(command: Command, part: Partition) -> None:
    log = cw.Log(part.path)
    log.scan().to_arrow()
    code, _, error = command("cat", part.path, "--isolation", "read_uncommitted")
    assert code == 0
    assert error.splitlines() == [f"warning: {warning}" for warning in log.warnings]


def test_segments_outside_the_range_cause_no_warning(command: Command, copied: Any) -> None:
    path = copied(PLAIN.path)
    without_a_segment(path)
    assert command("cat", path, "--end-offset", "100")[2] == ""


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_a_cat_that_fails_warns_of_what_it_read_before(
    command: Command, copied: Any, harm: Callable[[Path], None]
) -> None:
    path = copied(PLAIN.path)
    harm(path)
    last = path / f"{PLAIN.bases[-1]:020d}.log"
    data = bytearray(last.read_bytes())
    data[100] ^= 1
    last.write_bytes(data)
    code, _, error = command("cat", path)
    assert code == 1
    warning, said = error.splitlines()
    assert warning.startswith("warning: ")
    assert f"offsets {missing(path).start} to " in warning
    assert said.startswith("cordwood: ")
    assert f"{last} is damaged at position 0 " in said


@pytest.mark.parametrize("on_damage", ["raise", "skip"])
@pytest.mark.parametrize("damage", BROKEN, ids=str)
def test_no_warning_repeats_the_error(command: Command, damage: Damage, on_damage: str) -> None:
    code, _, error = command("cat", damage.path, "--on-damage", on_damage)
    assert code == 1
    lines = error.splitlines()
    warnings = [line.removeprefix("warning: ") for line in lines if line.startswith("warning: ")]
    others = [line for line in lines if not line.startswith("warning: ")]
    assert len(warnings) == len(set(warnings))
    assert others
    assert all(line.startswith("cordwood: ") for line in others)
    assert not any(warning in line for line in others for warning in warnings)


@pytest.mark.parametrize(
    "arguments",
    [
        ("find", "--offset", "450"),
        ("find", "--time", "0"),
        ("truncate", "--to", "460"),
        ("truncate", "--to", "460", "--json"),
        ("truncate", "--to", "460", "--yes"),
        ("truncate", "--to", "0", "--yes"),
        ("apply-retention", "--now", "2023-11-15"),
        ("apply-retention", "--now", "2100-01-01"),
        ("apply-retention", "--now", "2100-01-01", "--yes"),
    ],
    ids=" ".join,
)
def test_other_commands_warn_as_well(command: Command, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Only of the tail of a segment that is not a batch."""
    path = Path(shutil.copytree(PLAIN.path, tmp_path / "orders-0"))
    last = path / f"{PLAIN.bases[-1]:020d}.log"
    name, *options = arguments
    code, out, error = command(name, path, *options)
    assert (code, error) == (0, ""), error
    shutil.rmtree(path)
    shutil.copytree(PLAIN.path, path)
    with last.open("ab") as file:
        file.write(b"no batch")
    code, torn_out, error = command(name, path, *options)
    assert code == 0
    assert torn_out.startswith(out[:20])
    found = [f"warning: {last}: no whole batch follows position "]
    if "--yes" in options:
        # the opening for writing cuts it
        found = [*found, f"warning: {last}: cut 8 bytes, "]
    lines = error.splitlines()
    assert len(lines) == len(found)
    assert all(map(str.startswith, lines, found)), error


def test_ls_of_a_data_directory_notes_the_warnings_of_an_opening(command: Command) -> None:
    _, out, error = command("ls", corpus.GOLDEN / "16-data-dir")
    assert error == ""
    notes = {line.split()[0]: line for line in out.splitlines()[1:] if line.startswith("cities")}
    assert notes["cities-1"].rstrip().endswith("1 warning")
    assert "warning" not in notes["cities-0"]


def test_an_end_that_cannot_be_read_is_a_warning(command: Command, copied: Any) -> None:
    """The command itself needs only the first segment."""
    path = copied(PLAIN.path)
    last = path / f"{PLAIN.bases[-1]:020d}.log"
    last.unlink()
    last.symlink_to(last.name)
    code, out, error = command("cat", path, "--limit", "1", "--end-offset", "3")
    assert (code, len(out.splitlines())) == (0, 1)
    assert error.startswith("warning: ")
    assert str(last) in error
