"""Micro-batches: each is written once, however often Spark repeats it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cordwood.spark.write.journal import Journal
from spark.reading import refuses
from spark.writing import QUERY, Sink, all_texts, left, texts, values

pytestmark = pytest.mark.python_source

OTHER = "0d5c1f7e-0000-4000-8000-ba9876543210"


def micro_batch(path: Path, batch: int, *, partitions: int = 1, **options: Any) -> Sink:
    """A micro-batch for a topic, which has so many partitions if it is new."""
    count = {} if partitions == 1 else {"numPartitions": partitions}
    return Sink(path, "value", "partition", topic="orders", batch=batch, **count, **options)


def rows(*pairs: tuple[int, str]) -> list[dict[str, Any]]:
    return [{"value": text.encode(), "partition": number} for number, text in pairs]


def test_a_micro_batch_that_is_repeated_is_written_once(root: Path) -> None:
    for batch in range(3):
        for _ in range(3):
            micro_batch(root, batch, partitions=2).run(rows((0, f"a{batch}"), (1, f"b{batch}")))
    assert [texts(root / f"orders-{n}") for n in range(2)] == [["a0", "a1", "a2"], ["b0", "b1", "b2"]]
    assert left(root) == []


def test_a_repeated_micro_batch_may_have_other_partitions(root: Path) -> None:
    """The numbers are those of the query in the whole directory, and not those of each partition."""
    micro_batch(root, 0, partitions=4).run(rows((3, "a")))
    micro_batch(root, 1).run(rows((1, "b")))
    micro_batch(root, 1).run(rows((0, "b"), (3, "b")))
    assert all_texts(root) == Counter("ab")
    assert Journal(str(root)).last_batch(QUERY) == 1


def test_queries_do_not_disturb_each_other(root: Path) -> None:
    for batch, query in [(5, QUERY), (0, OTHER), (6, QUERY), (1, OTHER), (6, QUERY)]:
        micro_batch(root, batch, query=query).run(rows((0, f"{query[:1]}{batch}")))
    assert texts(root / "orders-0") == ["75", "00", "76", "01"]


def test_a_micro_batch_without_rows_changes_nothing(root: Path) -> None:
    micro_batch(root, 0).run([], [])
    micro_batch(root, 1).commit([])
    assert not list(root.rglob("*.log"))


def test_what_an_earlier_run_staged_is_removed(root: Path) -> None:
    micro_batch(root, 0, partitions=3).stage(0, rows((0, "a"), (2, "b")))
    micro_batch(root, 0, query=OTHER).stage(0, rows((0, "c")))
    micro_batch(root, 0).run(rows((0, "a")))
    assert texts(root / "orders-0") == ["a"]
    # the other query may be running
    assert [path.split("/")[-1] for path in left(root)] == [f"{OTHER}-0"]


def test_an_aborted_micro_batch_leaves_nothing_and_can_be_repeated(root: Path) -> None:
    sink = micro_batch(root, 0)
    sink.abort([sink.stage(0, rows((0, "a"))), None])
    assert list(root.iterdir()) == []
    micro_batch(root, 0).run(rows((0, "a")))
    assert all_texts(root) == Counter("a")


def test_a_complete_result_replaces_the_one_before(root: Path) -> None:
    for batch in range(3):
        for _ in range(2):
            micro_batch(root, batch, partitions=2, overwrite=True).run(rows((0, f"a{batch}"), (1, f"b{batch}")))
    assert all_texts(root) == Counter(["a2", "b2"])


def test_a_stream_and_a_batch_write_to_one_topic(root: Path) -> None:
    micro_batch(root, 0).run(rows((0, "a")))
    Sink(root, "value", topic="orders").run(values("b"))
    micro_batch(root, 0).run(rows((0, "a")))
    micro_batch(root, 1).run(rows((0, "c")))
    assert texts(root / "orders-0") == ["a", "b", "c"]


def test_a_batch_with_an_id_and_a_number_is_written_once(root: Path) -> None:
    for number, text in [(3, "a"), (3, "a"), (2, "late"), (4, "b"), (4, "b")]:
        Sink(root, "value", topic="orders", txnAppId="job-7", txnVersion=number).run(values(text))
    Sink(root, "value", topic="orders", txnAppId="job-8", txnVersion=0).run(values("c"))
    assert texts(root / "orders-0") == ["a", "b", "c"]
    assert left(root) == []


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"txnAppId": "x"}, "txnVersion"),
        ({"txnVersion": 1}, "txnAppId"),
        ({"txnAppId": "../x", "txnVersion": 1}, "txnAppId"),
        ({"txnAppId": "x", "txnVersion": -1}, "txnVersion"),
        ({"txnAppId": "x", "txnVersion": 1 << 63}, "txnVersion"),
    ],
)
def test_an_invalid_id_or_number_is_named(root: Path, options: dict[str, Any], word: str) -> None:
    with refuses("CORDWOOD_BAD_OPTION", word):
        Sink(root, "value", topic="orders", **options)


def test_a_stream_has_numbers_of_its_own(root: Path) -> None:
    with refuses("CORDWOOD_BAD_OPTION", "txnAppId"):
        micro_batch(root, 0, txnAppId="x", txnVersion=1)


def test_a_task_without_the_id_of_its_query_is_refused(root: Path) -> None:
    """Its micro-batch could not be recognised, and would be lost or written twice."""
    sink = micro_batch(root, 0)
    sink.properties = {"sql.streaming.queryId": "", "streaming.sql.batchId": "0"}
    with refuses("CORDWOOD_UNSUPPORTED", "queryId"):
        sink.stage(0, rows((0, "a")))
