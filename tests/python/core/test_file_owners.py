"""Files that are written belong to the user of the directory, who runs the broker, and keep their permissions."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import corpus
import pytest
import scripts
from batches import Rec, batch, name

import cordwood as cw

BROKER = 4242
GROUP = 4343
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


def give(path: Path) -> None:
    for file in (path, *path.rglob("*")):
        os.chown(file, BROKER, GROUP)


def owners(path: Path) -> set[tuple[int, int]]:
    return {(file.stat().st_uid, file.stat().st_gid) for file in (path, *path.rglob("*"))}


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    """A data directory with a partition whose last batch is torn, and without indexes."""
    data = tmp_path / "data"
    path = data / "orders-0"
    path.mkdir(parents=True)
    content = b"".join(batch(offset, [Rec(b"%d" % offset)]) for offset in range(10))
    (path / name(0)).write_bytes(content[:-10])
    return path


@AS_ROOT
@pytest.mark.parametrize("policy", ["torn_tail", "kafka", "salvage"])
def test_a_repair_as_root_leaves_all_files_to_the_user_of_the_directory(torn: Path, policy: str) -> None:
    give(torn)
    cw.repair(torn, policy=policy, dry_run=False)
    assert len(list(torn.rglob("*"))) > 3
    assert owners(torn) == {(BROKER, GROUP)}
    assert not [found for found in cw.verify(torn).findings if found.code == "other_owner"]


@AS_ROOT
def test_a_writer_as_root_leaves_all_files_to_the_user_of_the_directory(torn: Path) -> None:
    (torn.parent / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    give(torn.parent)
    for path in (torn, torn.parent / "new-0"):
        with cw.LogWriter(path) as writer:
            writer.append("value")
        cw.rebuild_indexes(path, dry_run=False)
    assert (torn.parent / ".lock").exists()
    assert owners(torn.parent) == {(BROKER, GROUP)}


@AS_ROOT
def test_a_copy_as_root_belongs_to_the_user_of_the_destination(torn: Path) -> None:
    part = corpus.partition("01-plain")
    give(torn.parent)
    cw.copy(part.path, torn.parent / "copied-0")
    assert owners(torn.parent) == {(BROKER, GROUP)}


@AS_ROOT
def test_a_file_of_another_user_is_reported(tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(corpus.GOLDEN / "16-data-dir", data, ignore=shutil.ignore_patterns("expected"))
    assert not [found for found in cw.verify(data).findings if found.code == "other_owner"]
    os.chown(data, BROKER, GROUP)  # the directory of a mount may be that of root, or of another
    assert not [found for found in cw.verify(data).findings if found.code == "other_owner"]
    os.chown(data / "meta.properties", BROKER, GROUP)  # the storage may have been formatted by another user
    assert not [found for found in cw.verify(data).findings if found.code == "other_owner"]
    os.chown(data / "recovery-point-offset-checkpoint", BROKER, GROUP)
    found = [found for found in cw.verify(data).findings if found.code == "other_owner"]
    assert {Path(one.file).name for one in found} == {path.parent.name for path in data.glob("*/*.log")}
    give(data)
    os.chown(data / "cities-0" / name(0), 0, 0)
    [one] = [found for found in cw.verify(data).findings if found.code == "other_owner"]
    assert one.file == str(data / "cities-0" / name(0))
    assert one.severity == "warning"
    assert f"user {BROKER}" in one.expected
    assert "user 0" in one.found


def test_a_file_keeps_its_permissions_and_a_new_one_has_those_of_the_directory(torn: Path) -> None:
    log = torn / name(0)
    log.chmod(0o600)
    torn.chmod(0o750)
    previous = os.umask(0)
    try:
        cw.repair(torn, policy="salvage", dry_run=False)
    finally:
        os.umask(previous)
    assert log.stat().st_mode & 0o777 == 0o600
    [kept] = (torn / "quarantine").glob("*.log.*")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert (torn / log.with_suffix(".index").name).stat().st_mode & 0o777 == 0o640
    torn.chmod(0o700)
    with cw.LogWriter(torn) as writer:
        writer.append("value")
    for file in (torn / ".cordwood.durable", torn / ".cordwood.checkpoint"):
        assert file.stat().st_mode & 0o777 == 0o600


@AS_ROOT
def test_a_compaction_keeps_owner_and_permissions(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    config = cw.LogConfig(segment_bytes=4096, cleanup_policy="compact")
    with cw.LogWriter(path, config=config) as writer:
        for number in range(200):
            writer.append(b"x" * 100, key=b"%d" % (number % 3))
    for log in path.glob("*.log"):
        log.chmod(0o600)
    give(path)
    os.chown(path, 0, 0)  # so that a new file would be root's
    with cw.LogWriter(path, config=config) as writer:
        assert writer.compact().is_due
        for suffix in ("log", "index", "timeindex"):
            found = (path / f"{0:020}.{suffix}").stat()
            assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (BROKER, GROUP, 0o600), suffix


@AS_ROOT
def test_a_member_of_the_group_leaves_the_files_to_the_group(torn: Path, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o755)
        path = place / "orders-0"
        shutil.copytree(torn, path)
        give(path)
        path.chmod(0o770)
        (path / name(0)).chmod(0o660)
        script = f"""
            import os, cordwood
            os.setgroups([{GROUP}])
            os.setresgid(5555, 5555, 5555)
            os.setresuid(5555, 5555, 5555)
            cordwood.repair({str(path)!r}, policy="salvage", dry_run=False)
        """
        scripts.run(scripts.write_script(tmp_path, script), env=dict(os.environ))
        assert {file.stat().st_gid for file in path.iterdir()} == {GROUP}
        assert (path / name(0)).stat().st_mode & 0o777 == 0o660


def test_a_new_file_in_a_directory_that_cannot_be_listed_is_readable_by_its_user(torn: Path) -> None:
    torn.chmod(0o311)
    with cw.LogWriter(torn) as writer:
        writer.append("value")
    torn.chmod(0o700)
    assert (torn / ".cordwood.durable").stat().st_mode & 0o777 == 0o600
