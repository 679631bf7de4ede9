"""Bulk look-ups: for all types of targets they equal single look-ups, or raise an error with advice."""

from __future__ import annotations

import array
import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any

import corpus
import pyarrow as pa
import pytest
from case_names import plain_repr

import cordwood as cw

np = pytest.importorskip("numpy")

LOG: Any = cw.Log(corpus.partition("01-small").path)
PLACES = [5, 0, 369, 200]


def expected(offsets: list[int | None]) -> list[int | None]:
    """The results of `locate`, one at a time."""
    found: list[int | None] = []
    for offset in offsets:
        inside = offset is not None and 0 <= offset < LOG.log_end_offset
        location = LOG.locate(offset) if inside and offset is not None else None
        found.append(None if location is None else location.batch_base_offset)
    return found


def check(given: Any, offsets: list[int | None]) -> None:
    assert LOG.locate_many(given)["batch_base_offset"].to_pylist() == expected(offsets)


def unaligned(numbers: list[int]) -> Any:
    at_an_odd_address = bytearray(b"?" + np.array(numbers, dtype="i8").tobytes())
    return np.ndarray(len(numbers), dtype="i8", buffer=at_an_odd_address, offset=1)


def field_of_packed_rows(numbers: list[int]) -> Any:
    rows = np.zeros(len(numbers), dtype=[("flag", "i1"), ("offset", "i8")])
    rows["offset"] = numbers
    return rows["offset"]


@pytest.mark.parametrize(
    "made",
    [
        tuple,
        iter,
        lambda numbers: (number for number in numbers),
        lambda numbers: array.array("q", numbers),
        lambda numbers: array.array("H", numbers),
        lambda numbers: [np.int64(numbers[0]), np.uint64(numbers[1]), *numbers[2:]],
        lambda numbers: np.array(numbers, dtype="u2"),
        lambda numbers: np.array(numbers, dtype="u8"),
        lambda numbers: np.array(numbers, dtype=">i8"),
        lambda numbers: np.array(numbers, dtype=">u4"),
        lambda numbers: np.array(numbers, dtype=object),
        lambda numbers: np.repeat(np.array(numbers), 3)[::3],
        lambda numbers: np.array(numbers[::-1])[::-1],
        unaligned,
        field_of_packed_rows,
        lambda numbers: pa.array(numbers, pa.uint64()),
        lambda numbers: pa.array([1, 2, *numbers, 3], pa.int32())[2:-1],
        lambda numbers: pa.array(unaligned([1, 2, *numbers, 3]))[2:-1],
        lambda numbers: pa.array(numbers).dictionary_encode(),
        lambda numbers: pa.chunked_array([numbers[:1], [], numbers[1:]], pa.int64()),
        lambda numbers: pa.chunked_array([pa.array(part).dictionary_encode() for part in (numbers[:1], numbers[1:])]),
    ],
)
def test_every_form_of_integers_is_accepted(made: Callable[[list[int]], Any]) -> None:
    check(made(PLACES), list(PLACES))


@pytest.mark.parametrize(
    "given",
    [
        [5, 2**63],
        [5, -(2**63) - 1],
        [5, 10**30],
        [5, None],
        np.array([5, 2**63], dtype="u8"),
        np.array([5, 2**64 - 1], dtype=">u8"),
        np.array([5, 2**70], dtype=object),
        np.ma.array([5, 6], mask=[False, True]),
        pa.array([5, 2**63], pa.uint64()),
        pa.array([5, 2**64 - 1], pa.uint64()).dictionary_encode(),
        pa.array([5, None], pa.int32()),
        pa.chunked_array([[5], [None]], pa.int64()),
    ],
    ids=plain_repr,
)
def test_missing_values_and_values_beyond_64_bits_have_no_result(given: Any) -> None:
    check(given, [5, None])
    assert LOG.offsets_for_times(given)["offset"].to_pylist() == [0, None]


def test_columns_of_pandas() -> None:
    pd = pytest.importorskip("pandas")
    check(pd.Series([5, None], dtype="Int64"), [5, None])
    check(pd.Series([5, 2**63], dtype="UInt64"), [5, None])
    check(pd.Series([5, pd.NA, pd.NaT, 2**70], dtype=object), [5, None, None, None])
    check(pd.Series([5, 200, 5], dtype="category"), [5, 200, 5])
    check(pd.Series(np.array([5, 200], dtype=">i8")), [5, 200])
    check(pd.RangeIndex(3), [0, 1, 2])
    check([pd.NA, 5], [None, 5])
    with pytest.raises(TypeError, match=r"offsets: expected integers, found double; convert"):
        LOG.locate_many(pd.Series([5, None]))
    with pytest.raises(TypeError, match=r"found struct.*give one of its columns"):
        LOG.locate_many(pd.DataFrame({"offset": [5]}))
    times = pd.Series(pd.to_datetime([0, None], utc=True))
    assert LOG.offsets_for_times(times)["offset"].to_pylist() == [0, None]
    assert LOG.offsets_for_times(times.astype("category"))["offset"].to_pylist() == [0, None]


def test_columns_of_polars() -> None:
    pl = pytest.importorskip("polars")
    check(pl.Series([5, None]), [5, None])
    check(pl.Series([5, 2**63], dtype=pl.UInt64), [5, None])
    check(pl.Series([5, 2**100], dtype=pl.Int128), [5, None])
    check(pl.Series([None]), [None])
    for wrong in (pl.Series([5.0]), pl.DataFrame({"offset": [5]}), pl.Series(["5"], dtype=pl.Categorical)):
        with pytest.raises(TypeError, match="offsets: expected integers, found"):
            LOG.locate_many(wrong)


NOW = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (5, r"int; for a single .* there is (locate|offset_for_time)\(\)"),
        (None, "NoneType; give a list"),
        (object(), "object; give a list"),
        ("567", "str; give a list"),
        (b"567", "bytes; give a list"),
        (bytearray(b"567"), "bytearray; give a list"),
        ({5: 6}, "dict; give a list"),
        ({5}, "set; give a list"),
        ([5.0], "double; convert"),
        ([5, 6.5], "double; convert"),
        ([True], "bool; convert"),
        ([5, True], "bool at place 1; convert"),
        ([2**63, "6"], "str at place 1; convert"),
        (["5"], "string; convert"),
        ([5, object()], "object at place 1; convert"),
        ([decimal.Decimal(5)], "decimal128"),
        ([[5]], "list"),
        (np.array([[5]]), "ndarray at place 0; give an array of one dimension"),
        (np.array(5), "ndarray; convert"),
        (np.array([1.0, float("nan")]), "double; convert"),
        (pa.array(["5"]).dictionary_encode(), "dictionary"),
        (pa.table({"offset": [5]}), "struct"),
        (pa.scalar(5), "Int64Scalar"),
    ],
    ids=plain_repr,
)
def test_values_that_are_not_integers_are_refused_with_advice(given: Any, found: str) -> None:
    for name, ask in (("offsets", LOG.locate_many), ("timestamps", LOG.offsets_for_times)):
        with pytest.raises(TypeError, match=f"^{name}: expected integers.*, found {found}"):
            ask(given)


def test_datetimes_are_times_and_not_offsets() -> None:
    late = [None, 0]
    assert LOG.offsets_for_times([NOW, 5])["offset"].to_pylist() == late
    assert LOG.offsets_for_times(iter([NOW, 5]))["offset"].to_pylist() == late
    for given in ([NOW], [5, NOW], pa.array([NOW])):
        with pytest.raises(TypeError, match="offsets: expected integers, found"):
            LOG.locate_many(given)
    naive = NOW.replace(tzinfo=None)
    for given in ([naive], [5, naive], np.array([5], dtype="M8[ms]"), pa.array([5], pa.timestamp("s"))):
        with pytest.raises(cw.ConfigError, match="with a time zone"):
            LOG.offsets_for_times(given)


def test_an_exception_of_a_column_is_passed_on() -> None:
    class Column:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        LOG.locate_many(Column())
