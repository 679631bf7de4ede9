"""Checks the files of a release: `python tests/release.py dist/*`.

`twine check` must accept every file. A wheel must have the files that it needs and no other, and no more bytes than
`docs/pages/start/install.md` says. In an empty environment of each Python it must install, be imported, read, and run
the command line. A source distribution must have what builds; its build must have the files of the wheel but the jar.

The versions of Python are those from 3.11 on that are on the path or among those of pyenv; the others are printed as
skipped. `--python` names one instead.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "tests" / "release-requirements.txt"
INSTALL = ROOT / "docs" / "pages" / "start" / "install.md"
SIZE = re.compile(r"at most (?P<mb>[0-9]+) MB")
MINORS = range(11, 15)
EXTENSION = "cordwood/_core.abi3.so"
JAR = "cordwood/spark/jars/cordwood-spark.jar"
# what maturin and the packaging standards add
INFORMATION = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
BILL = re.compile(r"sboms/.*\.cyclonedx\.json")

GOLDEN = ROOT / "tests" / "golden" / "01-plain"
READ = """
import sys, cordwood
assert cordwood.__file__.startswith(sys.prefix), cordwood.__file__
log = cordwood.Log(sys.argv[1])
assert sum(1 for _ in log.records()) == 1500
assert log.offset_for_time("2023-11-14T22:13:30Z").offset == 488
"""
WHICH = "import ensurepip, sys, venv; print(*sys.version_info[:2], sep='.')"


class Failure(Exception):  # noqa: N818  (its text is printed)
    """A file is not what a release promises."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--python", action="append", type=Path, default=[])
    given = parser.parse_args()
    files = [file.resolve() for file in given.files]
    try:
        check_descriptions(files)
        for file in files:
            if file.suffix == ".whl":
                check_wheel(file)
                check_installed(file, given.python)
            else:
                check_sources(file)
    except Failure as failure:
        print(f"release: {failure}")
        return 1
    print("release: all of it passed")
    return 0


def check_descriptions(files: list[Path]) -> None:
    with environment(sys.executable) as binaries:
        run(binaries / "python", "-m", "pip", "install", "--requirement", REQUIREMENTS)
        run(binaries / "python", "-m", "twine", "check", "--strict", *files)
    print(f"twine check: {len(files)} files passed")


def check_wheel(wheel: Path) -> None:
    """The files of a wheel, and its size, which is that of the download."""
    with zipfile.ZipFile(wheel) as archive:
        sizes = {entry.filename: entry.compress_size for entry in archive.infolist()}
    compare(wheel, set(sizes), needed(wheel) | {EXTENSION, JAR})
    extension, jar, total = sizes[EXTENSION], sizes[JAR], wheel.stat().st_size
    others = total - extension - jar
    print(f"{wheel.name}: {len(sizes)} files, {megabytes(total)}: extension {megabytes(extension)}, "
          f"jar {megabytes(jar)}, all others {megabytes(others)}")  # fmt: skip
    stated = SIZE.search(INSTALL.read_text(encoding="utf-8"))
    if stated is None:
        raise Failure(f"{INSTALL}: expected the size of a wheel, as `at most 12 MB`, and found none")
    if total > int(stated["mb"]) * 1_000_000:
        raise Failure(f"{wheel.name} has {megabytes(total)}, more than {INSTALL.name} says: {stated[0]}")


def check_installed(wheel: Path, pythons: list[Path]) -> None:
    """Installs a wheel with each Python, and uses it."""
    for python in pythons:
        use(wheel, python)
    if pythons:
        return
    tried = 0
    for minor in MINORS:
        found = interpreter(minor)
        if found is None:
            print(f"skipped: Python 3.{minor}, which is not installed")
            continue
        use(wheel, found)
        tried += 1
    if not tried:
        raise Failure("found no Python to install the wheel with; name one with --python")


def use(wheel: Path, python: Path) -> None:
    start = time.monotonic()
    with environment(python) as binaries:
        own, folder = binaries / "python", binaries.parent
        before = packages(own)
        run(own, "-m", "pip", "install", wheel)
        if packages(own) - before != {"cordwood"}:
            raise Failure(f"{wheel.name}: expected to need no other package, and found {packages(own) - before}")
        run(own, "-c", READ, GOLDEN / "orders-0", folder=folder)
        run(own, "-m", "pip", "install", f"{wheel}[cli]")
        for arguments in (["--version"], ["--help"], ["ls", GOLDEN], ["verify", GOLDEN / "orders-0"]):
            said = run(binaries / "cordwood", *arguments, folder=folder)
            if arguments == ["--version"] and version(wheel) not in said:
                raise Failure(f"{wheel.name}: `cordwood --version` prints {said!r}")
        exact = run(own, "--version").strip()
    print(f"{exact}: installed, imported, read, and ran the command line in {time.monotonic() - start:.0f} s")


def packages(python: Path) -> set[str]:
    """The names of the installed packages."""
    return {package["name"] for package in json.loads(run(python, "-m", "pip", "list", "--format", "json"))}


def check_sources(archive: Path) -> None:
    """The files of a source distribution, and what its build gives."""
    with tarfile.open(archive) as opened:
        names = {member.name.partition("/")[2] for member in opened.getmembers() if member.isfile()}
    python, rust = tracked("python"), tracked("src", "Cargo.lock", "Cargo.toml")
    texts = {"CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
    allowed = python | rust | texts
    wrong = sorted(names - allowed) + sorted(f"no {name}" for name in (python | texts) - names)
    if wrong:
        raise Failure(f"{archive.name} has {', '.join(wrong)}")
    print(f"{archive.name}: {len(names)} files, {megabytes(archive.stat().st_size)}")
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, archive)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as opened_wheel:
            compare(wheel, set(opened_wheel.namelist()), needed(wheel) | {EXTENSION})
    print(f"{archive.name}: built in {time.monotonic() - start:.0f} s")


def needed(wheel: Path) -> set[str]:
    """The files of every wheel of this version: the sources in Python, and information about the package."""
    information = f"cordwood-{version(wheel)}.dist-info"
    sources = {name.removeprefix("python/") for name in tracked("python")}
    return sources | {f"{information}/{name}" for name in INFORMATION}


def compare(wheel: Path, found: set[str], expected: set[str]) -> None:
    """Raises if files are missing or are too many. A bill of materials may be there."""
    missing = [f"no {name}" for name in sorted(expected - found)]
    more = [name for name in sorted(found - expected) if not BILL.fullmatch(name.partition(".dist-info/")[2])]
    if missing or more:
        raise Failure(f"{wheel.name} has {', '.join(missing + more)}")


def tracked(*paths: str) -> set[str]:
    """The files of the repository under these paths."""
    return set(run("git", "-C", ROOT, "ls-files", "--", *paths).splitlines())


def version(wheel: Path) -> str:
    return wheel.name.split("-")[1]


def interpreter(minor: int) -> Path | None:
    """A Python 3.`minor` that can make environments, if one is found."""
    name = f"python3.{minor}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    of_pyenv = sorted(pyenv.glob(f"versions/3.{minor}.*/bin/{name}"))
    on_path = shutil.which(name)
    for python in [*([on_path] if on_path else []), *map(str, of_pyenv)]:
        # one of pyenv on the path may only say that it is not chosen
        done = subprocess.run([python, "-c", WHICH], capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip() == f"3.{minor}":
            return Path(python)
    return None


@contextmanager
def environment(python: Path | str) -> Iterator[Path]:
    """The directory of the commands of an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        run(python, "-m", "venv", folder)
        yield Path(folder) / "bin"


def run(*command: object, folder: Path = ROOT) -> str:
    """Runs a command to its end; returns what it printed. Settings that name other modules of Python are left out."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, env=kept, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def megabytes(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"


if __name__ == "__main__":
    sys.exit(main())
