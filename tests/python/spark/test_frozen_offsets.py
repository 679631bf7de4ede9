"""Offsets that are resolved once and passed to several jobs as options."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import corpus
import needs_pyspark  # noqa: F401
import pytest

import cordwood as cw
from cordwood.spark import jobs

PLAIN = corpus.partition("01-plain")


def test_offsets_are_frozen_as_options() -> None:
    data = corpus.GOLDEN / "16-data-dir"
    found = jobs.resolve_offsets(data, subscribe="cities")
    parts = [corpus.partition("16-data-dir", name) for name in ("cities-0", "cities-1")]
    assert json.loads(found["startingOffsets"]) == {"cities": {str(p.number): p.log_start for p in parts}}
    ends = {str(p.number): p.opened["logEndOffset"] for p in parts}
    assert json.loads(found["endingOffsets"]) == {"cities": ends}
    # resolved offsets resolve to themselves
    assert jobs.resolve_offsets(data, subscribe="cities", **found) == found


def test_offsets_of_what_was_committed_end_at_the_last_stable_one() -> None:
    part = corpus.partition("11-transactions")
    end = corpus.last_stable_offset(part, part.opened["logEndOffset"])
    for asked in ({}, {"endingOffsets": {part.topic: {str(part.number): part.opened["logEndOffset"]}}}):
        found = jobs.resolve_offsets(part.path, isolationLevel="read_committed", startingOffsets="earliest", **asked)
        assert json.loads(found["endingOffsets"]) == {part.topic: {str(part.number): end}}


def test_offsets_of_a_directory_without_a_name_are_refused(tmp_path: Path) -> None:
    shutil.copytree(PLAIN.path, tmp_path / "restored")
    with pytest.raises(cw.ConfigError, match="expected a directory named topic-partition"):
        jobs.resolve_offsets(tmp_path / "restored")
