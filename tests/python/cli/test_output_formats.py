"""The format of a file of `-o`, by its suffix or by `--format`."""

from __future__ import annotations

from pathlib import Path

import corpus
import pytest
from commands import cordwood, ok

from cli.test_commands import failed
from cli.test_output import FORMATS, OFFSETS, SMALL, kind, offsets


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("out.jsonl", "jsonl"),
        ("out.ndjson", "jsonl"),
        ("out.json", "jsonl"),
        ("out.csv", "csv"),
        ("out.CSV", "csv"),
        ("out.arrow", "arrow"),
        ("out.feather", "arrow"),
        ("out.arrows", "stream"),
        ("out.parquet", "parquet"),
        ("out.pq", "parquet"),
        ("out", "jsonl"),
        ("out.d/records", "jsonl"),
        ("parquet", "jsonl"),
    ],
)
def test_the_suffix_decides_the_format(tmp_path: Path, name: str, wanted: str) -> None:
    (tmp_path / "out.d").mkdir()
    ok("cat", SMALL.path, "-o", tmp_path / name)
    content = (tmp_path / name).read_bytes()
    assert kind(content) == wanted
    assert offsets(content) == OFFSETS


@pytest.mark.parametrize(
    ("call", "known"),
    [
        (("cat", SMALL.path), ".jsonl, .ndjson, .json, .csv, .arrow, .feather, .ipc, .arrows, .parquet, .pq"),
        (("groups", corpus.GOLDEN / "16-data-dir"), ".jsonl"),
        (("dump", SMALL.path), ".txt, .log, .jsonl"),
        (("report", SMALL.path), ".html, .htm, .png, .svg"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_an_unknown_suffix_is_an_error_with_the_known_ones(tmp_path: Path, call: tuple[str, Path], known: str) -> None:
    target = tmp_path / "out.xyz"
    error = failed(cordwood(*call, "-o", target), 2)
    assert f"-o: expected a file with the suffix {known}" in error
    assert f", or --format, found {target}" in error
    assert list(tmp_path.iterdir()) == []


def test_the_option_and_raw_allow_any_suffix(tmp_path: Path) -> None:
    ok("cat", SMALL.path, "--format", "csv", "-o", tmp_path / "out.xyz")
    assert kind((tmp_path / "out.xyz").read_bytes()) == "csv"
    ok("dump", SMALL.path, "--format", "jsonl", "-o", tmp_path / "rows.txt")
    assert (tmp_path / "rows.txt").read_bytes().startswith(b"{")
    ok("cat", SMALL.path, "--raw", "-o", tmp_path / "out.bin")
    assert (tmp_path / "out.bin").exists()
    assert "has the suffix of csv" in failed(cordwood("cat", SMALL.path, "--raw", "-o", tmp_path / "out.csv"), 2)


@pytest.mark.parametrize("given", FORMATS)
def test_the_option_sets_the_format_of_a_file_without_a_suffix(tmp_path: Path, given: str) -> None:
    ok("cat", SMALL.path, "--format", given, "-o", tmp_path / "out")
    assert kind((tmp_path / "out").read_bytes()) == given
    ok("cat", SMALL.path, "--format", given, "-o", tmp_path / f"out.{given}")
    assert kind((tmp_path / f"out.{given}").read_bytes()) == given


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("out.parquet", ("--format", "csv")),
        ("out.jsonl", ("--format", "parquet")),
        ("out.arrow", ("--json",)),
        ("out", ("--json", "--format", "csv")),
        ("out.csv.gz", ()),
        ("out.jsonl.zst", ("--format", "jsonl")),
    ],
)
def test_a_contradiction_is_refused_before_anything_is_written(
    tmp_path: Path, name: str, options: tuple[str, ...]
) -> None:
    error = failed(cordwood("cat", SMALL.path, "-o", tmp_path / name, *options), 2)
    assert name in error or "--json" in error
    assert list(tmp_path.iterdir()) == []
