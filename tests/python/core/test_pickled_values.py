"""Records and segments are values: they compare by their fields, and pickle."""

from __future__ import annotations

import pickle
import shutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import corpus
import pytest

import cordwood as cw


def copied(value: object) -> object:
    return pickle.loads(pickle.dumps(value))


def same(record: cw.Record) -> cw.Record:
    return record


def test_records_pickle_and_compare_by_their_fields() -> None:
    log = cw.Log(corpus.partition("01-plain").path)
    records = list(log.records())
    assert copied(records) == records == list(cw.Log(log.path).records())
    assert len(set(records) | set(copied(records))) == len(records)
    first = records[0]
    assert first not in records[1:]
    assert first != (first.offset, first.timestamp)
    assert copied(first).headers == first.headers
    assert copied(first).timestamp_type is first.timestamp_type


def test_each_field_of_a_record_counts() -> None:
    def made(**changes: object) -> cw.Record:
        fields = {"value": b"v", "key": b"k", "headers": [("a", b"1"), ("a", None)], "timestamp": 5}
        return cw.Record(**{**fields, **changes})

    assert made() == made() == copied(made())
    assert hash(made()) == hash(made())
    for change in [{"value": None}, {"key": b""}, {"key": None}, {"headers": [("a", b"1")]}, {"timestamp": 6}]:
        assert made() != made(**change)
        assert copied(made(**change)) == made(**change)


def test_records_pass_between_processes() -> None:
    records = list(cw.Log(corpus.partition("01-plain").path).records(end_offset=20))
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert list(pool.map(same, records)) == records


def test_a_segment_pickles_as_its_log_and_its_base_offset(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    shutil.copytree(corpus.partition("01-plain").path, path)
    segments = list(cw.Log(path).segments)
    assert copied(segments) == segments
    assert [copied(segment).end_offset for segment in segments] == [segment.end_offset for segment in segments]
    pickled = pickle.dumps(segments[0])
    for file in path.glob(f"{segments[0].base_offset:020d}.*"):
        file.unlink()
    with pytest.raises(cw.LogChangedError, match="base offset 0 was deleted"):
        pickle.loads(pickled)
