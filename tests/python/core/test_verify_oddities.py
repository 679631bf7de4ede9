"""What `verify` says of batches with right checksums that break a rule, and of logs without a part."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from batches import CONTROL, TRANSACTIONAL, Rec, batch, marker, write_partition
from interop.broken_directories import METADATA, copy_whole

import cordwood as cw
from cordwood.cli import main

NOW = 1_700_000_000_000


def rec(value: bytes, key: bytes = b"key") -> Rec:
    return Rec(value, key, NOW)


def findings(path: Path, code: str, **options: bool) -> list[cw.Finding]:
    return [finding for finding in cw.verify(path, **options).findings if finding.code == code]


def test_a_control_record_of_a_producer_that_is_no_marker_contradicts_its_transaction(tmp_path: Path) -> None:
    fields = {"producer_id": 7, "producer_epoch": 0}
    other = batch(1, [rec(bytes(6), bytes([0, 0, 0, 77]))], attributes=CONTROL | TRANSACTIONAL, **fields)
    data = batch(0, [rec(b"a")], attributes=TRANSACTIONAL, base_sequence=0, **fields)
    path = write_partition(tmp_path / "pay-0", [(0, [data, other])])
    (finding,) = findings(path, "transactions_contradict")
    assert (finding.severity, finding.start_offset, finding.end_offset) == ("error", 1, 2)
    assert finding.found == "control record type 77"
    load = cw.plan_kafka_load(path, clean=False)
    assert load.failure is not None
    write_partition(tmp_path / "paid-0", [(0, [data, marker(1, 7, commit=True)])])
    assert findings(tmp_path / "paid-0", "transactions_contradict") == []


def test_a_gap_that_records_of_the_batch_before_it_may_explain(tmp_path: Path) -> None:
    more = batch(0, [rec(b"%d" % n) for n in range(5)], last_offset_delta=0)
    path = write_partition(tmp_path / "orders-0", [(0, [more, batch(5, [rec(b"five")])])])
    (finding,) = findings(path, "offset_gap")
    assert "more records than offsets" in finding.evidence[0]
    assert "cordwood cat --columns offset" in finding.advice
    path = write_partition(tmp_path / "others-0", [(0, [more, batch(6, [rec(b"six")])])])
    (finding,) = findings(path, "offset_gap")
    assert "from another replica" in finding.advice


def test_kafka_keeps_a_batch_with_a_right_checksum_whose_offsets_are_too_low(tmp_path: Path) -> None:
    # one bit from the next offset: no overlap, but damage of the offset
    for odd in ({}, {"last_offset_delta": 7}):
        batches = [batch(0, [rec(b"a")] * 5), batch(4, [rec(b"b")] * 9, **odd)]
        path = write_partition(tmp_path / f"orders{len(odd)}-0", [(0, batches)])
        load = cw.plan_kafka_load(path, clean=False)
        assert (load.failure, load.bytes_cut) == (None, 0)
        (finding,) = findings(path, "damaged_batch")
        assert findings(path, "torn_tail") == []
        assert "cuts" not in finding.kafka
        assert finding.kafka.startswith("loads it, also after a crash")
    # with a wrong checksum it cuts
    log = path / f"{0:020d}.log"
    log.write_bytes(b"".join([batches[0], batches[1][:-1] + b"?", batch(13, [rec(b"c")])]))
    (finding,) = findings(path, "damaged_batch")
    assert "cuts the segment here" in finding.kafka


def test_the_advice_for_the_metadata_of_a_cluster_is_no_salvage(tmp_path: Path) -> None:
    data = copy_whole(tmp_path / "data")
    log = data / METADATA / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    (finding,) = findings(data, "damaged_batch")
    assert "salvage" not in finding.advice
    assert "restore the directory from a copy" in finding.advice


def test_the_advice_for_a_lost_start_outside_a_data_directory_names_tiered_topics(tmp_path: Path) -> None:
    path = write_partition(tmp_path / "t-0", [(100, [batch(100, [rec(b"a")], leader_epoch=3)])])
    (path / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n3 100\n")
    (finding,) = findings(path, "lost_start")
    assert "remote.storage.enable=true, nothing" in finding.advice
    assert "looks the same" in finding.evidence[-1]


def test_a_partition_in_two_folders_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("a", "b"):
        write_partition(tmp_path / folder / "t-0", [(0, [batch(0, [rec(b"a")])])])
    found = cw.verify([tmp_path / "a", tmp_path / "b"]).findings
    copies = [finding for finding in found if finding.code == "duplicate_directory"]
    assert [(copy.severity, copy.file) for copy in copies] == [("warning", str(tmp_path / "b" / "t-0"))]
    # what the advice says
    both = [str(tmp_path / folder / "t-0") for folder in ("a", "b")]
    assert copies[0].advice.startswith("compare them with cordwood diff")
    assert main(["diff", *both]) == 0
    assert len(list(cw.Log(both[0]).records())) + len(list(cw.Log(both[1]).records())) == 2
    assert main(["count", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert "2 partitions" in capsys.readouterr().out
    # of one broker, whose metadata is elsewhere; of several
    for folder in ("a", "b"):
        (tmp_path / folder / "meta.properties").write_text(
            f"version=1\ncluster.id=x\nnode.id=1\ndirectory.id={folder}\n"
        )
    found = cw.verify([tmp_path / "a", tmp_path / "b"]).findings
    (copy,) = [finding for finding in found if finding.code == "duplicate_directory"]
    assert (copy.severity, copy.file) == ("warning", str(tmp_path / "b" / "t-0"))
    (tmp_path / "b" / "meta.properties").write_text("version=1\ncluster.id=x\nnode.id=2\n")
    found = cw.verify([tmp_path / "a", tmp_path / "b"]).findings
    assert "duplicate_directory" not in {finding.code for finding in found}


def test_a_folder_that_is_given_by_two_names_is_one(tmp_path: Path) -> None:
    write_partition(tmp_path / "data" / "t-0", [(0, [batch(0, [rec(b"a")])])])
    (tmp_path / "link").symlink_to(tmp_path / "data")
    for name in ("", "t-0"):
        found = cw.verify([tmp_path / "data" / name, tmp_path / "link" / name])
        assert found.partitions == 1
        assert "duplicate_directory" not in {finding.code for finding in found.findings}


@pytest.mark.parametrize("has_segment", [True, False])
def test_settings_and_tables_of_metadata_that_has_only_snapshots(tmp_path: Path, has_segment: bool) -> None:
    data = copy_whole(tmp_path / "data")
    whole = cw.metadata(data)
    if not has_segment:
        for file in (data / METADATA).glob("0*.*"):
            if file.suffix != ".checkpoint":
                file.unlink()
    assert cw.metadata(data).topics.to_arrow() == whole.topics.to_arrow()
    cw.plan_retention(cw.Log(data / "cities-0"))


def only_snapshots(data: Path) -> Path:
    """A data directory whose metadata log has lost its segments."""
    for file in (data / METADATA).glob("0*.*"):
        if file.suffix not in {".checkpoint", ".snapshot"}:
            file.unlink()
    return data


def test_snapshots_alone_are_read_by_every_path_to_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = copy_whole(tmp_path / "data")
    whole = cw.metadata(data).topics.to_arrow()
    only_snapshots(data)
    other = tmp_path / "other"
    (other / "cities-1").parent.mkdir()
    (data / "cities-1").rename(other / "cities-1")
    shutil.copy(data / "meta.properties", other)
    paths: list[Path | list[Path]] = [
        data,
        [data],
        [data, other],
        [other, data],
        data / METADATA,
        [data, data / METADATA],
    ]
    for path in paths:
        assert cw.metadata(path).topics.to_arrow() == whole
    monkeypatch.chdir(data / METADATA)
    assert cw.metadata(".").topics.to_arrow() == whole
    monkeypatch.chdir(data)
    assert cw.metadata(".").topics.to_arrow() == whole


def test_a_damaged_newest_snapshot_alone_is_replaced_by_the_one_before_it(tmp_path: Path) -> None:
    data = only_snapshots(copy_whole(tmp_path / "data"))
    *_, before, newest = sorted((data / METADATA).glob("*.checkpoint"))
    newest.write_bytes(newest.read_bytes()[:-20])
    with pytest.raises(cw.CorruptLogError):
        cw.metadata(data)
    for on_damage in ("skip", "report"):
        found = cw.metadata(data, on_damage=on_damage)
        assert found.snapshot == str(before)
        assert [row["offset"] for row in found.errors.to_arrow().to_pylist()] == [int(newest.name[:20])]
        assert found.topics.to_arrow() == cw.metadata(before).topics.to_arrow()
    # none is whole
    for file in (data / METADATA).glob("*.checkpoint"):
        file.write_bytes(file.read_bytes()[:-20])
    assert cw.metadata(data, on_damage="skip").errors.to_arrow().num_rows > 1


def test_no_error_about_the_metadata_of_a_cluster_advises_to_remove_its_snapshots(tmp_path: Path) -> None:
    data = only_snapshots(copy_whole(tmp_path / "data"))
    (finding,) = findings(data, "no_segment")
    with pytest.raises(cw.CordwoodError) as opened:
        cw.Log(data / METADATA)
    for text in (finding.expected, finding.advice, str(opened.value)):
        assert "remove all files" not in text
    assert "a broker starts from the newest snapshot" in finding.expected


def test_a_limit_for_batches_does_not_change_the_settings_of_the_topic(tmp_path: Path) -> None:
    path = copy_whole(tmp_path / "data") / "rivers.compact-0"
    for _ in range(2):
        loads = [cw.plan_kafka_load(path, clean=False, max_batch_bytes=limit) for limit in (80, 1 << 20)]
        assert [(load.index_interval_bytes, load.interval_source) for load in loads] == [(1024, "topic")] * 2
