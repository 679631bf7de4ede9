"""Writes `tests/vectors/text_lines.json`: logs, and their lines as `text_twin` writes them.

`python tests/python/cli/text_vectors.py` writes the file again; `tests/vectors/README.md` describes it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from batches import LOG_APPEND_TIME, TRANSACTIONAL, Rec, batch, marker, name

import cordwood as cw
from cli import text_twin

VECTORS = Path(__file__).resolve().parents[2] / "vectors" / "text_lines.json"
DEFAULT = ["offset", "timestamp", "timestamp_type", "key", "value", "headers"]
ALL = [
    *("headers", "topic", "partition", "leader_epoch", "producer_id", "producer_epoch", "sequence"),
    *("is_transactional", "is_control", "codec", "magic", "batch_base_offset", "position", "segment_base_offset"),
    *("key_size", "value_size", "offset", "timestamp", "timestamp_type", "key", "value"),
]
TIME = 1_700_000_000_123

TEXTS = [
    "",
    "plain",
    "exactly 16 bytes",
    "17 bytes with a\\x"[:17],
    'a "quoted" word, a comma and a \\ backslash',
    '"',
    '""',
    "\\u0041",
    '{"id": 7, "name": "x\\ny"}',
    "first line\nsecond line\r\n\tindented",
    "\b\f\x00\x01\x1f \x7f",
    "\x1b[2J\x1b]0;title\x07",
    "caf\u00e9 \u00b0\u00bf \u00a0 \u0430\u0431\u0432 \u4e2d\u6587 \U0001f600",
    "C1 \x80\x85\x9b\x9f \u00a0",
    "hidden \u061c\u200b\u200f \u2010 \u2028\u2029\u202e \u202f \u2060\u206f \u2070 \ufeff \ufff9\ufffb \ufffc \ufffd",
    "tags \U000e0000\U000e0041\U000e007f \U000e0080 \U0010ffff",
    "\ud7ff\ue000\uffff\U00010000",
    "x" * 300 + "\n" + "y" * 300,
]
BYTES = [
    b"\xff",
    b"\xff\xfe",
    b"\x00\xff\x00",
    b"lone \xed\xa0\x80 surrogate",
    b"cut \xe2\x82",
    b"overlong \xc0\xaf",
    b"beyond \xf4\x90\x80\x80",
    bytes(range(256)),
]


def cases() -> dict[str, tuple[list[bytes], list[str], str]]:
    """By name: the batches of a log, the columns, and what happens to damage."""
    contents = [None, *(text.encode() for text in TEXTS), *BYTES]
    values = [Rec(value=content, key=contents[-1 - place], timestamp=TIME) for place, content in enumerate(contents)]
    headers = [
        Rec(headers=()),
        Rec(headers=((b"", b""),)),
        Rec(headers=((b"k", b"v"), (b"k", None), (b"k", b"v"))),
        Rec(headers=((b'"quoted", name', b'"quoted", value\n'), (b"\xff not UTF-8 \xed\xa0\x80", b"\xff"))),
        Rec(headers=(("\u202e\x1b\x9b".encode(), "\u202e\x1b\x9b\U000e0041".encode()),)),
    ]
    times = [-1, 0, 1, 999, 951_782_399_999, 951_782_400_000, TIME, 253_402_300_800_000, text_twin.MAX_ARROW_TIME]
    timed = [Rec(value=b"v", timestamp=time) for time in times]
    broken = bytearray(batch(2, [Rec(value=b"lost", timestamp=TIME)]))
    broken[-1] ^= 1
    damaged = [
        batch(0, [Rec(value=b"before", timestamp=TIME), Rec(timestamp=TIME)]),
        bytes(broken),
        batch(3, [Rec(value=b"after", timestamp=TIME)]),
    ]
    transaction = {"producer_id": 2**40, "producer_epoch": 3}
    mixed = [
        batch(
            0,
            [Rec(value=b"a"), Rec(key=b"b")],
            leader_epoch=7,
            attributes=TRANSACTIONAL,
            base_sequence=9,
            **transaction,
        ),
        marker(2, 2**40, 3, commit=False, timestamp=TIME, leader_epoch=7),
        batch(3, [Rec(value=b"c", timestamp=5)], leader_epoch=8, codec=1),
        batch(4, [Rec(value=b"d")], leader_epoch=8, attributes=LOG_APPEND_TIME, max_timestamp=TIME),
    ]
    return {
        "values": ([batch(0, values)], DEFAULT, "raise"),
        "headers": ([batch(0, headers)], DEFAULT, "raise"),
        "times": ([batch(0, timed, base_timestamp=0)], ["offset", "timestamp"], "raise"),
        "one column": ([batch(0, values[:4])], ["key"], "raise"),
        "every column": (mixed, ALL, "raise"),
        "no records": ([batch(0, [], last_offset_delta=0, count=0)], DEFAULT, "raise"),
        "damage": (damaged, DEFAULT, "report"),
        "damage, every column": (damaged, ALL, "report"),
        "damage, one column": (damaged, ["value"], "report"),
    }


def write_log(folder: Path, log: bytes) -> Path:
    path = folder / "awkward-3"
    path.mkdir()
    (path / name(0)).write_bytes(log)
    return path


def vector(label: str, batches: list[bytes], columns: list[str], on_damage: Any) -> dict[str, Any]:
    log = b"".join(batches)
    with tempfile.TemporaryDirectory() as folder:
        path = write_log(Path(folder), log)
        scan = cw.Log(path).scan(columns=columns, on_damage=on_damage, include_control=True)
        table = scan.to_arrow()
        texts = {
            given: text_twin.lines(table, given).decode().replace(str(path), "{path}") for given in text_twin.FORMATS
        }
    return {"name": label, "log": log.hex(), "columns": columns, "on_damage": on_damage, **texts}


if __name__ == "__main__":
    vectors = [vector(label, *case) for label, case in cases().items()]
    VECTORS.write_text(json.dumps(vectors, indent=1) + "\n", encoding="utf-8")
