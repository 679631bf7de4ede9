"""`cordwood reindex`: a dry run, a rebuild, several partitions, and errors."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import corpus
import pytest
from commands import cordwood
from scripts import BECOME_NOBODY, run, write_script

INDEX = "00000000000000000400.index"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A partition with a wrong index and without a time index."""
    copy = Path(shutil.copytree(corpus.partition("01-plain").path, tmp_path / "orders-0"))
    index = copy / INDEX
    index.write_bytes(b"\0" * 8 + index.read_bytes()[8:])
    (copy / "00000000000000000807.timeindex").unlink()
    return copy


def test_a_dry_run_prints_the_differences_and_changes_nothing(path: Path) -> None:
    before = sorted((file.name, file.read_bytes()) for file in path.iterdir())
    done = cordwood("reindex", path)
    assert done.returncode == 0
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    assert [INDEX, "differs", "224", "224", "3"] in lines
    assert ["00000000000000000807.timeindex", "missing", "336"] in lines
    title = "2 of 12 files differ from what the log gives (index.interval.bytes 1024, as the indexes show)"
    assert title in done.stdout.decode()
    assert "nothing was written; add --yes" in done.stdout.decode()
    assert sorted((file.name, file.read_bytes()) for file in path.iterdir()) == before


def test_with_yes_the_files_are_those_of_the_broker_and_the_old_one_is_kept(path: Path) -> None:
    wrong = (path / INDEX).read_bytes()
    done = cordwood("reindex", path, "--yes", "--json")
    assert done.returncode == 0
    document = json.loads(done.stdout)
    (partition,) = document["partitions"]
    assert not document["dry_run"]
    differing = {Path(file["file"]).name: file for file in partition["files"] if file["reason"] != "unchanged"}
    assert Path(differing[INDEX]["quarantine"]).read_bytes() == wrong
    for name in differing:
        assert (path / name).read_bytes() == (corpus.partition("01-plain").path / name).read_bytes()
    again = cordwood("reindex", path, "--yes")
    assert "12 files as the log gives them" in again.stdout.decode()


def test_settings_determine_the_entries(path: Path) -> None:
    document = json.loads(cordwood("reindex", path, "--json", "--set", "index.interval.bytes=512").stdout)
    (partition,) = document["partitions"]
    assert (partition["index_interval_bytes"], partition["interval_source"]) == (512, "given")
    assert sum(file["reason"] == "differs" for file in partition["files"]) > 4


def test_an_error_in_one_of_several_partitions_ends_with_1_and_the_others_are_processed(path: Path) -> None:
    other = Path(shutil.copytree(corpus.partition("01-small").path, path.parent / "tickets-0"))
    log = path / "00000000000000000400.log"
    log.write_bytes(log.read_bytes()[:3000] + b"!" + log.read_bytes()[3001:])
    done = cordwood("reindex", path.parent)
    assert done.returncode == 1
    assert f"{other}: 12 files as the log gives them" in done.stdout.decode()
    assert f"{log} is damaged at position" in done.stderr.decode()
    assert "1 of 2 partitions could not be rebuilt: orders-0" in done.stderr.decode()
    alone = cordwood("reindex", path, "--yes")
    assert alone.returncode == 1
    assert alone.stdout == b""
    assert cordwood("reindex").returncode == 2


def test_a_partition_that_may_not_be_read_is_not_left_out(script_environment: dict[str, str]) -> None:
    """As an unprivileged user, in a data directory."""
    top = Path(tempfile.mkdtemp(prefix="cordwood-"))
    top.chmod(0o755)
    data = Path(shutil.copytree(corpus.GOLDEN / "16-data-dir", top / "data"))
    closed = data / "cities-0"
    closed.chmod(0)
    script = write_script(
        top,
        # modules that are imported on first use, which the user may not be able to read
        "import sys\nfrom cordwood.cli import main\nmain(['reindex', sys.argv[1]])\n"
        + BECOME_NOBODY
        + "print('code', main(['reindex', sys.argv[1]]))\n",
    )
    try:
        done = run(script, data, env=script_environment)
        assert done.stdout.splitlines()[-1] == "code 1"
        assert "could not be rebuilt: cities-0" in done.stderr
    finally:
        closed.chmod(0o755)
        shutil.rmtree(top)
