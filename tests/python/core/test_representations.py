"""`repr`, and the representation in a notebook."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path

import corpus
import pytest

import cordwood as cw

PLAIN = corpus.partition("01-plain").path
DATA = corpus.GOLDEN / "16-data-dir"


def test_every_public_class_has_a_repr() -> None:
    without = []
    for name in cw.__all__:
        exported = getattr(cw, name)
        if inspect.isclass(exported) and exported.__repr__ is object.__repr__:
            without.append(name)
    assert without == []


def test_the_repr_of_a_flush_mode_is_its_constructor() -> None:
    for mode, shown in [
        (cw.FlushMode.group(), "FlushMode.group(ms=2, bytes=1048576)"),
        (cw.FlushMode.interval(messages=9), "FlushMode.interval(messages=9)"),
        (cw.FlushMode.interval(), "FlushMode.interval()"),
    ]:
        assert repr(mode) == shown
        assert eval(shown, {"FlushMode": cw.FlushMode}) == mode  # noqa: S307
        assert pickle.loads(pickle.dumps(mode)) == mode
        assert hash(pickle.loads(pickle.dumps(mode))) == hash(mode)
        assert shown == f"FlushMode.{mode}"
    assert cw.FlushMode.group(ms=3) != cw.FlushMode.group()


def test_a_scan_shows_its_range_and_columns() -> None:
    log = cw.Log(PLAIN)
    default = "columns offset timestamp timestamp_type key value headers"
    assert repr(log.scan()) == f"<Scan {PLAIN} {default}>"
    scan = log.scan(start_offset=5, end_offset=9, start_time=3, end_time=8, columns=["key"], limit=7)
    bounds = "offset >= 5 offset < 9 timestamp >= 3 timestamp < 8 limit 7"
    assert repr(scan) == f"<Scan {PLAIN} {bounds} columns key>"
    assert repr(cw.LogDir(DATA).scan(["c*"], columns=[])) == f"<Scan {DATA} topics cities columns >"
    assert repr(log.batches()).startswith(f"<Scan {PLAIN} columns base_offset last_offset ")


def test_a_notebook_shows_the_first_rows(tmp_path: Path) -> None:
    with cw.LogWriter(tmp_path / "orders-0") as writer:
        writer.append_many([cw.Record("<b>&", key=b"\xff\x00", timestamp=5), cw.Record("x" * 10_000, timestamp=6)])
        writer.append_many([cw.Record(f"later {n}") for n in range(10)])
    scan = cw.Log(tmp_path / "orders-0").scan()
    scan.to_arrow()
    stats = scan.stats
    shown = scan._repr_html_()
    assert shown.count("<tr>") == 1 + 5
    assert "&lt;b&gt;&amp;" in shown
    assert "<b>" not in shown
    assert "later 2" in shown
    assert "later 3" not in shown
    assert "x" * 59 + "…" in shown
    assert "\\xff\\x00" in shown
    assert scan.stats.records == stats.records == 12
    assert scan.to_arrow().num_rows == 12


def test_a_notebook_shows_an_error_as_its_text(tmp_path: Path) -> None:
    empty = cw.Log(PLAIN).scan(start_offset=1500)
    assert "no rows" in empty._repr_html_()
    with cw.LogWriter(tmp_path / "orders-0") as writer:
        writer.append_many(["a", "b"])
        writer.append("c")
    (segment,) = (tmp_path / "orders-0").glob("*.log")
    with segment.open("r+b") as file:
        file.seek(65)
        file.write(b"\xff")
    scan = cw.Log(tmp_path / "orders-0").scan()
    with pytest.raises(cw.CorruptLogError):
        scan.to_arrow()
    assert "<pre>CorruptLogError: " in scan._repr_html_()


def test_a_notebook_shows_a_time_that_no_datetime_can_hold(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    with cw.LogWriter(path, config=cw.LogConfig(message_timestamp_after_max_ms=2**63 - 1)) as writer:
        writer.append(b"late", timestamp=300_000_000_000_000_000)
    assert "300000000000000000 ms" in cw.Log(path).scan()._repr_html_()
