"""The examples of Spark in its guide and in the README, run unchanged except for their paths."""

from __future__ import annotations

import re
import shutil
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pyarrow.dataset as ds
import pytest

import cordwood as cw
from cordwood.spark import jar_file, jobs
from spark.reading import KAFKA, in_java

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "pages" / "guides" / "spark.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PLAIN = corpus.partition("01-plain")


@pytest.mark.long
def test_the_examples_of_the_guide_work(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of its blocks, one after the other, in one session; without the jar, except that for the jar."""
    if not in_java():
        monkeypatch.setattr(jar_file, "_FILE", "missing.jar")
    snapshot, lake = tmp_path / "snapshot", tmp_path / "lake"
    for part in (PLAIN, corpus.partition("16-data-dir", "cities-0")):
        shutil.copytree(part.path, snapshot / part.name)
    guide = GUIDE.read_text(encoding="utf-8")
    blocks = BLOCK.findall(guide)
    assert len(blocks) == 6
    short = [block for block in BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8")) if "pyspark" in block]
    assert len(short) == 1
    blocks = [block for block in short + blocks if in_java() or "jar()" not in block]
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        # getOrCreate returns the shared session and warns about its settings
        warnings.simplefilter("ignore")
        for block in blocks:
            code = block.replace("/mnt/snapshot", str(snapshot)).replace("/lake", str(lake))
            exec(compile(code, str(GUIDE), "exec"), names)  # noqa: S102  (our own examples)
    assert names["spark"] is spark
    spark.sql("DROP TABLE IF EXISTS orders")
    records = corpus.visible(PLAIN)

    asked = [record for record in records if record.offset >= 488]
    assert names["orders"].columns == KAFKA
    by_minute = {int(row.window.start.timestamp()): row.records for row in names["minutes"].collect()}
    assert by_minute == Counter(record.timestamp // 60_000 * 60 for record in asked)

    streamed = ds.dataset(lake / "orders-stream", format="parquet").to_table(columns=["offset"])
    assert sorted(streamed["offset"].to_pylist()) == [record.offset for record in records]

    logs = lake / "logs"
    written = [cw.Log(logs / f"payments-{number}").records() for number in range(3)]
    values = {record.key: record.value for log in written for record in log}
    assert values == {b"%d" % number: b"%d" % (7 * number) for number in range(1000)}
    copied = [(record.key, record.value, record.timestamp) for record in cw.Log(logs / "copied-0").records()]
    decoded = [(bytes(row.key), bytes(row.value)) for row in names["decoded"].orderBy("offset").collect()]
    plain = [(record.key, record.value, record.timestamp) for record in cw.Log(PLAIN.path).records()]
    assert copied == plain
    assert decoded == [record[:2] for record in plain]

    said = capsys.readouterr().out
    assert re.search(r"\|\s*0\|\s*0\|\s*0\|\s*\d+\|", said), said
    assert "2023-11-14 22:13:30.038, 488" in said, said

    # the output of the command in the text
    options = {"startingTimestamp": 1_700_000_010_000, "endingTimestamp": 1_700_000_020_000}
    done = jobs.export(spark, snapshot, lake / "orders", subscribe="orders", **options)
    assert f"/lake/orders: {done.rows} rows in {done.files} file, " in guide
    assert {path.parent.name for path in (lake / "orders").glob("topic=orders/*/*")} == {"date=2023-11-14"}
