"""`repair` and `carve` from Python: what the Rust tests do not see."""

from __future__ import annotations

import shutil
from pathlib import Path

import corpus
import pytest

import cordwood as cw

DAMAGED = corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0"
INTACT = corpus.GOLDEN / "01-small" / "tickets-0"


def copied(source: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(source, tmp_path / source.name))


def records(path: Path) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record in cw.Log(path).records()]


def test_a_dry_run_is_the_default_and_changes_nothing(tmp_path: Path) -> None:
    path = copied(DAMAGED, tmp_path)
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    plan = cw.repair(path, policy="salvage")
    assert not plan.is_applied
    assert not plan.is_clean
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before


def test_a_repair_keeps_every_other_record_and_the_bytes_that_it_takes_out(tmp_path: Path) -> None:
    path = copied(DAMAGED, tmp_path)
    damaged = next(path.glob("*285.log")).read_bytes()
    done = cw.repair(path, policy="salvage", dry_run=False)
    assert done.is_applied
    [lost] = done.lost_ranges
    assert records(path) == [record for record in records(INTACT) if record[0] != lost.start_offset]
    assert lost.quarantine is not None
    assert Path(lost.quarantine).read_bytes() == damaged[lost.start_position : lost.end_position]
    assert cw.repair(path, policy="salvage").is_clean


def test_damage_that_is_no_torn_write_is_an_error_that_names_the_policies() -> None:
    with pytest.raises(cw.CorruptLogError, match=r"salvage.*kafka") as raised:
        cw.repair(DAMAGED)
    assert raised.value.offset == 302


def test_a_wrong_policy_is_named() -> None:
    with pytest.raises(
        cw.ConfigError, match=r'policy: expected "torn_tail" or "kafka" or "salvage", found "torn-tail"'
    ):
        cw.repair(DAMAGED, policy="torn-tail")  # type: ignore[arg-type]


def test_a_log_with_a_writer_is_not_repaired(tmp_path: Path) -> None:
    path = tmp_path / "notes-0"
    with cw.LogWriter(path) as writer:
        writer.append(b"value")
        with pytest.raises(cw.LockedError):
            cw.repair(path)


def test_an_image_is_carved_into_partitions(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(b"\x07" * 999 + b"".join(file.read_bytes() for file in sorted(INTACT.glob("*.log"))))
    report = cw.carve(image, tmp_path / "found")
    [run] = report.runs
    assert (run.first_offset, run.last_offset, run.records, run.confidence) == (0, 369, 370, "high")
    assert run.pieces[0].start_position == 999
    assert run.directory == str(tmp_path / "found" / "carved-0")
    assert records(Path(run.directory)) == records(INTACT)
    with pytest.raises(cw.ConfigError, match=r"destination: expected a new or an empty directory"):
        cw.carve(image, tmp_path / "found")


def closed(path: Path, *, first: int = 0) -> Path:
    """A log with segments from the offsets 0, 13, 25, 37 and 49 that a writer has closed."""
    with cw.LogWriter(path, config=cw.LogConfig(segment_bytes=1000)) as writer:
        for number in range(60):
            writer.append(f"v{number}" * 3, key=f"k{number}")
        writer.delete_before(first)
    return path


def remove_segment(path: Path, base_offset: int) -> None:
    for file in path.glob(f"{base_offset:020}.*"):
        file.unlink()


def opens(path: Path) -> bool:
    try:
        cw.LogWriter.plan_recovery(path)
    except cw.CorruptLogError:
        return False
    return True


@pytest.mark.parametrize(
    ("first", "missing", "code"), [(0, 25, "not_as_closed"), (0, 0, "lost_start"), (30, 25, "lost_start")]
)
def test_a_missing_segment_is_only_passed_over_if_records_may_be_lost(
    tmp_path: Path, first: int, missing: int, code: str
) -> None:
    path = closed(tmp_path / "orders-0", first=first)
    bases = [segment.base_offset for segment in cw.Log(path).segments]
    assert missing in bases
    (path / f"{missing:020}.log").unlink()
    # something else that a repair mends
    (path / f"{bases[-1]:020}.timeindex").unlink()
    findings = {finding.code: finding for finding in cw.verify(path).findings}
    assert findings[code].severity == "error"
    assert findings["orphan_file"].advice == f"cordwood repair {path} --policy salvage --apply"
    with pytest.raises(cw.CorruptLogError):
        cw.repair(path, dry_run=False)
    assert not opens(path)
    plan = cw.repair(path, policy="salvage")
    marker = ".cordwood.clean" if code == "not_as_closed" else ".cordwood.checkpoint"
    assert [action.kind for action in plan.actions if action.file == str(path / marker)] == ["remove_file"]
    cw.repair(path, policy="salvage", dry_run=False)
    assert opens(path)
    assert cw.repair(path).is_clean
    left = max(first, bases[1] if missing == bases[0] else 0)
    assert cw.Log(path).log_start_offset == left
    cw.LogWriter(path).close()
    assert cw.Log(path).log_end_offset == 60


def test_a_checkpoint_that_no_writer_reads_is_an_error_with_what_to_do(tmp_path: Path) -> None:
    path = closed(tmp_path / "orders-0")
    (path / ".cordwood.checkpoint").write_text("g")
    (finding,) = cw.verify(path).findings
    assert (finding.code, finding.severity) == ("writer_file_unreadable", "error")
    assert finding.advice == "restore the file, or remove it"
    assert not opens(path)


@pytest.mark.parametrize("case", ["01-plain", "17-v1-gzip"])
@pytest.mark.parametrize("policy", ["kafka", "torn_tail"])
def test_the_bytes_that_are_cut_off_are_kept_with_the_zeros_at_their_end(
    tmp_path: Path, case: str, policy: str
) -> None:
    part = corpus.partition(case)
    path = copied(part.path, tmp_path)
    [*_, log] = sorted(path.glob("*.log"))
    content = bytearray(log.read_bytes())
    rows = cw.Log(path).batches().to_arrow().to_pylist()
    batches = [row for row in rows if row["base_offset"] >= int(log.stem)]
    at = batches[-3]["position"] if policy == "kafka" else batches[-1]["position"]
    content[at + 30] ^= 1
    log.write_bytes(content)
    for index in path.glob(f"{log.stem}.*index"):
        index.unlink()
    cw.repair(path, policy=policy, dry_run=False)
    [kept] = (path / "quarantine").glob(f"{log.name}.*")
    assert kept.read_bytes() == content[at:]
