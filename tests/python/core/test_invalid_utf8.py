"""Keys and values that are not UTF-8 in columns of text, compared with Python's decoder."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from batches import Rec, batch, write_partition

import cordwood as cw

PIECES = [
    b"plain",
    "größer".encode(),
    "日本語".encode(),
    b"\xff",
    b"\xc3",
    b"\xe2\x82",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x92",
    b"\xf4\x90\x80\x80",
    b"\xc0\xaf",
    b"",
    b"\x00",
]


Pairs = list[tuple[bytes | None, bytes | None]]
Text = Callable[[bytes | None], str | None]


def text(chooser: random.Random) -> bytes | None:
    if chooser.random() < 0.1:
        return None
    return b"".join(chooser.choices(PIECES, k=chooser.randrange(6)))


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    chooser = random.Random(18)
    return [(text(chooser), text(chooser)) for _ in range(3000)]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory, pairs: Pairs) -> cw.Log:
    records = [Rec(value, key=key) for key, value in pairs]
    batches = [batch(at, records[at : at + 600]) for at in range(0, len(records), 600)]
    return cw.Log(write_partition(tmp_path_factory.mktemp("data") / "t-0", [(0, batches)]))


def replaced(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def or_null(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


@pytest.mark.parametrize("kind", ["string", "string_view"])
@pytest.mark.parametrize(("on_invalid", "expected"), [("replace", replaced), ("null", or_null)])
@pytest.mark.parametrize("limits", [{}, {"max_rows": 7}, {"max_bytes": 100}, {"threads": 4}])
def test_invalid_text_is_replaced_as_in_python_or_null(
    log: cw.Log, pairs: Pairs, *, kind: str, on_invalid: str, expected: Text, limits: dict[str, Any]
) -> None:
    scan = log.scan(key_type=kind, value_type=kind, on_invalid_utf8=on_invalid, columns=["key", "value"], **limits)
    rows = scan.to_arrow()
    rows.validate(full=True)
    assert rows["key"].to_pylist() == [expected(key) for key, _ in pairs]
    assert rows["value"].to_pylist() == [expected(value) for _, value in pairs]
    assert pickle.loads(pickle.dumps(scan)).to_arrow() == rows


@pytest.mark.parametrize("kind", ["string", "string_view"])
def test_invalid_text_is_by_default_an_error_with_the_offset_and_the_option(
    log: cw.Log, pairs: Pairs, kind: str
) -> None:
    first = next(offset for offset, (_, value) in enumerate(pairs) if or_null(value) is None and value is not None)
    for options in [{}, {"on_invalid_utf8": "raise"}]:
        with pytest.raises(cw.ConfigError, match=f"at offset {first} .*") as raised:
            log.scan(value_type=kind, **options).to_arrow()
        assert "on_invalid_utf8" in str(raised.value)


def test_binary_columns_keep_the_bytes(log: cw.Log, pairs: Pairs) -> None:
    rows = log.scan(on_invalid_utf8="replace", columns=["value"]).to_arrow()
    assert rows["value"].to_pylist() == [value for _, value in pairs]


def test_text_of_a_data_directory_is_replaced(log: cw.Log, pairs: Pairs) -> None:
    (Path(log.path).parent / "meta.properties").write_text("version=1\nnode.id=1\n", encoding="utf-8")
    scan = cw.LogDir(Path(log.path).parent).scan(value_type="string", on_invalid_utf8="null", columns=["value"])
    assert scan.to_arrow()["value"].to_pylist() == [or_null(value) for _, value in pairs]


def test_another_word_is_a_config_error(log: cw.Log) -> None:
    with pytest.raises(cw.ConfigError, match="on_invalid_utf8"):
        log.scan(on_invalid_utf8="ignore")
