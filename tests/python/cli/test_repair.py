"""`cordwood repair` and `cordwood carve`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import corpus
import pytest
from commands import outputs

import cordwood as cw

pytest.importorskip("typer")

DAMAGED = corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0"


def test_a_plan_is_printed_and_applied_only_when_asked(tmp_path: Path) -> None:
    path = Path(shutil.copytree(DAMAGED, tmp_path / "tickets-0"))
    code, text, _ = outputs("repair", path, "--policy", "salvage")
    assert code == 1
    assert "taken out 170 bytes" in text
    assert "offset 302: " in text
    assert "nothing was written; add --apply" in text
    assert not (path / "quarantine").exists()
    code, text, _ = outputs("repair", path, "--policy", "salvage", "--apply")
    assert (code, "the repair changed these files" in text) == (0, True)
    assert cw.Log(path).log_end_offset == 370
    code, text, _ = outputs("repair", path, "--policy", "salvage", "--yes")
    assert (code, "nothing to repair" in text) == (0, True)


def test_the_default_policy_refuses_other_damage() -> None:
    code, text, error = outputs("repair", DAMAGED)
    assert (code, text) == (1, "")
    assert "salvage" in error
    assert "kafka" in error


def test_a_plan_is_one_document() -> None:
    code, text, _ = outputs("repair", DAMAGED, "--policy", "kafka", "--json")
    document = json.loads(text)
    assert (code, document["policy"], document["is_applied"]) == (1, "kafka", False)
    assert document["lost_ranges"][0]["start_offset"] == 302


def test_carve_prints_runs_and_writes_them(tmp_path: Path) -> None:
    image = next(DAMAGED.glob("*285.log"))
    code, text, _ = outputs("carve", image, "--into", tmp_path / "found")
    assert code == 0
    assert "285 to 301" in text
    assert "303 to 369" in text
    assert cw.Log(tmp_path / "found" / "carved-1").log_end_offset == 370
    document = json.loads(outputs("carve", image, "--min-records", 20, "--json")[1])
    assert [run["records"] for run in document["runs"]] == [67]
    assert document["small_runs"] == 1


def test_an_image_without_a_batch_is_nothing_found(tmp_path: Path) -> None:
    (tmp_path / "zeros").write_bytes(bytes(5000))
    code, _, error = outputs("carve", tmp_path / "zeros")
    assert (code, "no whole batch in 5000 bytes" in error) == (1, True)


def test_a_missing_segment_is_named_where_nothing_can_be_repaired(tmp_path: Path) -> None:
    path = Path(shutil.copytree(corpus.GOLDEN / "01-plain" / "orders-0", tmp_path / "orders-0"))
    bases = sorted(int(file.stem) for file in path.glob("*.log"))
    assert "no segment" not in outputs("repair", path)[1]
    for file in path.glob(f"{bases[1]:020d}.*"):
        file.unlink()
    code, out, _ = outputs("repair", path)
    assert (code, "nothing to repair" in out) == (0, True)
    assert f"no segment contains offsets {bases[1]} to {bases[2] - 1}" in out


def test_the_plan_says_that_the_brokers_marker_of_a_clean_shutdown_goes(tmp_path: Path) -> None:
    data = Path(
        shutil.copytree(corpus.GOLDEN / "16-data-dir", tmp_path / "data", ignore=lambda *_: ["expected", "cities-0"])
    )
    path = Path(shutil.copytree(DAMAGED, data / "tickets-0"))
    marker = data / ".kafka_cleanshutdown"
    marker.unlink()
    arguments = ("repair", path, "--policy", "salvage")
    assert str(marker) not in outputs(*arguments)[1]
    assert not cw.repair(path, policy="salvage").has_clean_shutdown
    marker.write_text('{"version":0,"brokerEpoch":1}')
    assert (
        f"{marker} would be removed first: at its next start the broker recovers all partitions"
        in (outputs(*arguments)[1])
    )
    assert json.loads(outputs(*arguments, "--json")[1])["has_clean_shutdown"] is True
    assert marker.exists()
    assert f"{marker} was removed" in outputs(*arguments, "--apply")[1]
    assert not marker.exists()


def test_the_policies_are_written_as_in_python() -> None:
    assert outputs("repair", DAMAGED, "--policy", "torn_tail")[0] == 1
    code, _, error = outputs("repair", DAMAGED, "--policy", "torn-tail")
    assert code == 2
    assert all(f"'{policy}'" in error for policy in ("torn_tail", "kafka", "salvage"))


def test_a_repair_names_what_it_cannot_restore_and_where_whole_batches_may_be(tmp_path: Path) -> None:
    path = Path(shutil.copytree(corpus.partition("01-plain").path, tmp_path / "orders-0"))
    (path / f"{400:020}.log").write_bytes(b"")
    code, shown, _ = outputs("repair", path, "--policy", "salvage", "--apply")
    assert code == 0
    assert "no segment contains offsets 400 to 806" in shown
    damaged = path / f"{807:020}.log"
    content = bytearray(damaged.read_bytes())
    content[20_000] ^= 1
    damaged.write_bytes(content)
    hint = f"cordwood carve {path / 'quarantine'} finds whole batches in these bytes"
    assert f"{hint} after the repair" in outputs("repair", path, "--policy", "salvage")[1]
    assert f"{hint}, if there are any" in outputs("repair", path, "--policy", "salvage", "--apply")[1]
