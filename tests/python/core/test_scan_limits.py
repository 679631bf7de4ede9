"""`scan(limit=…)`: the first rows of the same scan without a limit, and nothing read after them."""

from __future__ import annotations

import pickle

import corpus
import pytest

import cordwood as cw

PLAIN = corpus.partition("01-plain").path
DATA = corpus.GOLDEN / "16-data-dir"


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("max_rows", [1, 7, 65_536])
@pytest.mark.parametrize("limit", [0, 1, 6, 7, 8, 399, 400, 401, 1500, 1501, 2**62])
def test_a_limit_returns_the_first_rows(limit: int, max_rows: int, threads: int) -> None:
    log = cw.Log(PLAIN)
    whole = log.scan(columns=["offset", "value"]).to_arrow()
    scan = log.scan(columns=["offset", "value"], limit=limit, max_rows=max_rows, threads=threads)
    assert scan.to_arrow().to_pydict() == whole.slice(0, min(limit, 1500)).to_pydict()
    assert scan.stats.records == min(limit, 1500)


def test_a_scan_with_a_limit_reads_no_batch_after_the_last_row() -> None:
    log = cw.Log(PLAIN)
    scan = log.scan(limit=3, threads=4)
    scan.to_arrow()
    assert (scan.stats.batches, scan.stats.segments_opened) == (1, 1)
    nothing = log.scan(limit=0)
    nothing.to_arrow()
    assert nothing.stats.bytes_read == 0


def test_every_reading_starts_with_the_whole_limit() -> None:
    scan = cw.Log(PLAIN).scan(limit=4)
    assert [scan.to_arrow().num_rows, scan.to_arrow().num_rows] == [4, 4]
    assert pickle.loads(pickle.dumps(scan)).to_arrow().equals(scan.to_arrow())


def test_a_limit_applies_to_ranges_and_splits() -> None:
    log = cw.Log(PLAIN)
    assert log.scan(start_offset=10, end_offset=12, limit=5).to_arrow()["offset"].to_pylist() == [10, 11]
    for split in log.plan(50_000):
        offsets = log.scan(split=split, limit=2).to_arrow()["offset"].to_pylist()
        assert offsets == [split.start_offset, split.start_offset + 1]


def test_a_limit_applies_to_all_partitions_of_a_directory_together() -> None:
    whole = cw.LogDir(DATA).scan().to_arrow()
    assert whole.num_rows > 40
    for limit in range(0, whole.num_rows + 10, 7):
        rows = cw.LogDir(DATA).scan(limit=limit).to_arrow()
        assert rows.to_pydict() == whole.slice(0, limit).to_pydict()


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_a_limit_counts_the_records_that_are_returned(isolation: str) -> None:
    log = cw.Log(corpus.partition("11-transactions").path)
    whole = log.scan(isolation_level=isolation).to_arrow()  # type: ignore[arg-type]
    for limit in (1, 36, 37, 100, 500):
        scan = log.scan(isolation_level=isolation, limit=limit)  # type: ignore[arg-type]
        rows = scan.to_arrow()
        assert rows["offset"].to_pylist() == whole["offset"].to_pylist()[:limit]
        if isolation == "read_uncommitted":
            # the first record of an aborted transaction is at offset 36
            assert (scan.first_uncommitted is not None) == (36 in rows["offset"].to_pylist())


def test_globs_choose_topics() -> None:
    directory = cw.LogDir(DATA)

    def topics(*wanted: str) -> list[str]:
        rows = directory.scan(list(wanted), columns=["topic"]).to_arrow()
        return sorted(set(rows["topic"].to_pylist()))

    with_records = topics(*directory.topics)
    assert topics("*") == with_records
    assert topics("cit*") == topics("c[ij]ties") == topics("cities") == ["cities"]
    assert topics("cities", "cit*") == ["cities"]
    assert topics("__*") == [topic for topic in with_records if topic.startswith("__")]
    assert topics("[!_]*") == [topic for topic in with_records if not topic.startswith("_")]
    scan = directory.scan(["cit*"])
    assert pickle.loads(pickle.dumps(scan)).to_arrow().equals(scan.to_arrow())


@pytest.mark.parametrize("wanted", ["cites", "orders-*", "CITIES", "cities-0"])
def test_a_name_or_glob_without_a_topic_is_an_error_that_lists_the_topics(wanted: str) -> None:
    with pytest.raises(cw.ConfigError, match=r"^topics\[1\]: expected one of .*cities.*found") as caught:
        cw.LogDir(DATA).scan(["cities", wanted])
    assert ('did you mean "cities"' in str(caught.value)) == (wanted != "orders-*")


def test_an_unknown_keyword_is_refused_with_the_nearest_one() -> None:
    log = cw.Log(PLAIN)
    with pytest.raises(TypeError, match=r"^Log\.scan\(\) got an unexpected keyword argument 'limits' \(did you mean"):
        log.scan(limits=5)  # type: ignore[call-arg]
    for call in (log.records, log.batches, cw.LogDir(DATA).scan):
        with pytest.raises(TypeError, match="unexpected keyword argument 'split'"):
            call(split=None)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'limit'"):
        log.plan(5, limit=5)  # type: ignore[call-arg]
