"""The patches with bugs that the crash tests must detect fit the tree."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import seeded_bugs


@pytest.mark.parametrize("patch", seeded_bugs.PATCHES, ids=lambda patch: patch.stem)
def test_each_patch_applies_to_the_tree(patch: Path) -> None:
    texts: dict[str, str] = {}
    seeded_bugs.apply(patch, seeded_bugs.ROOT, texts)
    assert patch.stem == "switch" or all(f'crate::seeded::is("{patch.stem}")' in text for text in texts.values())


def test_all_of_them_apply_to_one_copy() -> None:
    texts: dict[str, str] = {}
    for patch in seeded_bugs.PATCHES:
        seeded_bugs.apply(patch, seeded_bugs.ROOT, texts)
    written = "".join(texts.values())
    bugs = [patch.stem for patch in seeded_bugs.PATCHES if patch.stem != "switch"]
    assert len(bugs) == 28
    assert [bug for bug in bugs if f'crate::seeded::is("{bug}")' not in written] == []


def test_a_patch_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    patch = tmp_path / "one.patch"
    patch.write_text("Why.\n\n--- a/file\n+++ b/file\n@@ -7,2 +7,2 @@\n a\n-b\n+c\n")
    for text, applied in [("x\na\nb\n", "x\na\nc\n"), ("a\nx\nb\n", None), ("a\nb\na\nb\n", None)]:
        (tmp_path / "file").write_text(text)
        texts: dict[str, str] = {}
        if applied is None:
            with pytest.raises(seeded_bugs.PatchError, match=r"one.patch: expected these lines once in file"):
                seeded_bugs.apply(patch, tmp_path, texts)
        else:
            seeded_bugs.apply(patch, tmp_path, texts)
            assert texts == {"file": applied}
