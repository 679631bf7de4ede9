"""Seeds bugs in a copy of the tree, and runs the tests that must detect them.

Each file of `tests/seeded` is a patch with one bug, which breaks one rule of the writer or of the cleaner;
`switch.patch` has the switch by which a test turns one of them on. All of them are applied to one copy, which is
compiled once. A hunk is applied where its lines are, whatever its line numbers: they must occur once in the file.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATCHES = sorted((ROOT / "tests" / "seeded").glob("*.patch"))
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
# what the crash tests need
COPIED = ["Cargo.toml", "Cargo.lock", "benches", "src", "tests/rust", "tests/seeded"]
OUTSIDE = "/dev/null"


class PatchError(Exception):
    """A patch does not fit the tree."""


def hunks(patch: str) -> Iterator[tuple[str, bool, str, str]]:
    """For each hunk: the file, whether it is new, the lines before, and those after."""
    path, is_new, old, new = "", False, "", ""
    for line in patch.splitlines(keepends=True):
        if line.startswith(("--- ", "@@")) and (old or new):
            yield path, is_new, old, new
            old = new = ""
        if line.startswith("--- "):
            path, is_new = "", line.split()[1] == OUTSIDE
        elif line.startswith("+++ b/"):
            path = line.removeprefix("+++ b/").strip()
        elif path and line[0] in " -+":
            old += line[1:] if line[0] != "+" else ""
            new += line[1:] if line[0] != "-" else ""
    if old or new:
        yield path, is_new, old, new


def apply(patch: Path, tree: Path, texts: dict[str, str]) -> None:
    """Applies a patch to the texts of files by their paths, which are read from the tree if they are not there yet."""
    for path, is_new, old, new in hunks(patch.read_text()):
        if path not in texts:
            texts[path] = "" if is_new else (tree / path).read_text()
        if not is_new and texts[path].count(old) != 1:
            times = texts[path].count(old)
            raise PatchError(f"{patch.name}: expected these lines once in {path}, found them {times} times:\n{old}")
        texts[path] = new if is_new else texts[path].replace(old, new)


def copy() -> Path:
    """Makes the copy with all patches. Unchanged files keep their times: cargo does not compile them again."""
    changed: dict[str, str] = {}
    for patch in PATCHES:
        apply(patch, ROOT, changed)
    named = [ROOT / name for name in COPIED]
    files = [file for path in named for file in [path, *path.rglob("*")] if file.is_file()]
    contents = {str(file.relative_to(ROOT)): file.read_bytes() for file in files}
    contents |= {path: text.encode() for path, text in changed.items()}
    tree = TARGET / "seeded"
    for file in [file for file in tree.rglob("*") if file.is_file() and str(file.relative_to(tree)) not in contents]:
        file.unlink()
    for path, new in contents.items():
        to = tree / path
        if not to.is_file() or to.read_bytes() != new:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(new)
    return tree


def main() -> int:
    tree = copy()
    command = [os.environ.get("CARGO", "cargo"), "test", "--locked", "--profile", "crash", "--test", "crash"]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(TARGET)}
    run = [*command, "--", "--ignored", "seeded_bugs::seeded_", *sys.argv[1:]]
    return subprocess.run(run, cwd=tree, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
