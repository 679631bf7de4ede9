"""Checks the guarantees: that each has its tests, and that the rigs' figures reach their floors.

`tests/guarantees.toml` contains the guarantees, their tests, and the floors. This fails if a sentence has no test, a
test does not exist (or is never run), a rig fails, a figure is below its floor, or the page `docs/pages/guarantees.md`
differs. With `--write` the page's list and table are written instead of compared. With `--names` nothing runs: only
names and the page are checked. With `--only` some of the rigs run, and nothing else; the other rows of the page's table
remain.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import seeded_bugs

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "pages" / "guarantees.md"
CARGO = [os.environ.get("CARGO", "cargo"), "test", "--locked"]
PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout", "0"]
# because the rigs open millions of logs
OPTIMISED = ["--profile", "crash"]
PROMISE = re.compile(r"(?P<start><!-- guarantees: .*?-->\n)(?P<text>.*?)(?P<end><!-- end of guarantees -->)", re.DOTALL)
FIGURES = re.compile(r"(?P<start><!-- figures: .*?-->\n)(?P<text>.*?)(?P<end><!-- end of figures -->)", re.DOTALL)


class Failure(Exception):  # noqa: N818  (its text is printed)
    """A guarantee is not shown by its tests."""


@dataclass
class Rig:
    shows: str
    guarantees: list[int]
    run: str
    counts: str | None = None
    needs: str | None = None
    at_least: dict[str, int] = field(default_factory=dict)
    exactly: dict[str, int] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    seeded: bool = False  # whether it runs in the copy of the tree with the seeded bugs

    def check(self, figures: dict[str, int]) -> list[str]:
        """The figures that miss their floors."""
        wanted = [(name, floor, ">=") for name, floor in self.at_least.items()]
        wanted += [(name, value, "==") for name, value in self.exactly.items()]
        wrong = []
        for name, value, how in wanted:
            found = figures.get(name)
            if found is None or found < value or (how == "==" and found != value):
                wrong.append(f"{self.run}: expected {name} {how} {value:,}, found {found}")
        return wrong

    def floor(self) -> str:
        minimums = [f"≥ {value:,} {words(name)}" for name, value in self.at_least.items()]
        return ", ".join(minimums + [f"{value:,} {words(name)}" for name, value in self.exactly.items()])

    def row(self, found: str) -> str:
        numbers = ", ".join(map(str, self.guarantees))
        return f"| {numbers} | {self.shows} | {self.floor()} | {found} |"

    def found(self, figures: dict[str, int]) -> str:
        return ", ".join(f"{figures[name]:,} {words(name)}" for name in [*self.at_least, *self.exactly])


def words(name: str) -> str:
    return name.replace("_", " ")


def say(text: str) -> None:
    print(f"guarantees: {text}", flush=True)


@contextmanager
def progress(doing: str) -> Iterator[None]:
    """Prints every half minute that the work is not finished."""
    began, done = time.monotonic(), threading.Event()

    def tell() -> None:
        while not done.wait(30):
            say(f"… {doing}, {time.monotonic() - began:.0f} s")

    say(doing)
    telling = threading.Thread(target=tell, daemon=True)
    telling.start()
    try:
        yield
    finally:
        done.set()
        telling.join()


def is_available(needed: str) -> bool:
    """Whether there is a tool of this name, or, for `root`, whether this process is root."""
    return os.geteuid() == 0 if needed == "root" else shutil.which(needed) is not None


def output_of(command: list[str], environment: dict[str, str] | None = None, folder: Path = ROOT) -> str:
    """The output of a command, which must succeed."""
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **(environment or {})}, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        sys.stdout.write(done.stdout)
        raise Failure(f"exit code {done.returncode}: {' '.join(command[:12])}")
    return done.stdout


# --- the existing tests ---------------------------------------------------------------------------------------------


def each_test(promised: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Pairs of a sentence and one of its tests."""
    for guarantee in promised["guarantee"]:
        for promise in guarantee["promises"]:
            yield from ((promise["says"], test) for test in promise["tests"])


class Tests:
    """The existing tests, by the names used in the guarantees."""

    def __init__(self, promised: dict[str, Any]) -> None:
        named = [test for _, test in each_test(promised)] + [rig["run"] for rig in promised["rig"]]
        files = {f"tests/python/{test.split()[1].split('::')[0]}" for test in named if test.startswith("python ")}
        with progress("listing the tests"):
            self.rust = {name for binary in ("rust", "crash") for name in self.listed(binary)}
            # tests that only a rig or another test runs
            self.ignored = {name for binary in ("rust", "crash") for name in self.listed(binary, "--ignored")}
            existing = sorted(file for file in files if (ROOT / file).is_file())
            lines = output_of([*PYTEST, "--collect-only", "-q", *existing]).splitlines()
            self.python = [line for line in lines if "::" in line]

    @staticmethod
    def listed(binary: str, *more: str) -> list[str]:
        lines = output_of([*CARGO, "--test", binary, "--", "--list", *more]).splitlines()
        return [f"{binary} {name}" for line in lines for name, _, kind in [line.partition(": ")] if kind == "test"]

    def find(self, test: str) -> list[str]:
        """The tests with a name; pytest's parameters may be omitted."""
        kind, _, name = test.partition(" ")
        if kind == "python":
            path = f"tests/python/{name}"
            return [found for found in self.python if found == path or found.startswith(f"{path}[")]
        return [test] if test in self.rust else []

    def beginning(self, test: str) -> list[str]:
        if test.startswith("python "):
            return self.find(test)
        return sorted(found for found in self.rust if found.startswith(test))


def wrong_names(promised: dict[str, Any], rigs: list[Rig], tests: Tests) -> list[str]:
    """Guarantees without a test that runs."""
    run = [rig.run for rig in rigs]
    promises = [promise for guarantee in promised["guarantee"] for promise in guarantee["promises"]]
    wrong = [f"no test: {promise['says']}" for promise in promises if not promise["tests"]]
    for _, test in each_test(promised):
        if not tests.find(test):
            wrong.append(f"there is no such test: {test}")
        elif test in tests.ignored and not any(test.startswith(rig) for rig in run):
            wrong.append(f"nothing runs this test: {test}")
    wrong += [f"there is no such test: {rig}" for rig in run if not tests.beginning(rig)]
    numbers = range(1, len(promised["guarantee"]) + 1)
    wrong += [f"there is no guarantee {n}" for rig in rigs for n in rig.guarantees if n not in numbers]
    return wrong


# --- running ----------------------------------------------------------------------------------------------------------


def run_named(promised: dict[str, Any], rigs: list[Rig], tests: Tests) -> None:
    """Runs the tests named by the guarantees, except those that the rigs run."""
    named = sorted({test for _, test in each_test(promised)})
    named = [test for test in named if not any(test.startswith(rig.run) for rig in rigs)]
    with progress(f"running the {len(named)} tests that the guarantees name"):
        for binary in ("rust", "crash"):
            names = [test.partition(" ")[2] for test in named if test.startswith(f"{binary} ")]
            command = [*CARGO, "--test", binary, "--", "--exact", *names]
            print(output_of(command, {"CORDWOOD_EXHAUSTIVE": "1"}).strip().splitlines()[-1])
        names = [found for test in named if test.startswith("python ") for found in tests.find(test)]
        # a skipped test is printed with its reason; in CI it is a failure
        lines = output_of([*PYTEST, "-q", "-rs", *names]).splitlines()
        print("\n".join(line for line in lines if line.startswith("SKIPPED") or " passed" in line))


def run_rig(rig: Rig, tests: Tests) -> dict[str, int]:
    """Runs a rig and returns its figures."""
    kind, _, name = rig.run.partition(" ")
    began = time.monotonic()
    figures: dict[str, int] = {}
    with progress(rig.shows.replace("`", "")):
        if kind == "python":
            passed, output = run_python(rig)
        else:
            exact = ["--exact"] if tests.find(rig.run) else []
            command = [*CARGO, *OPTIMISED, "--test", kind, "--", "--include-ignored", "--nocapture", *exact, name]
            target = {"CARGO_TARGET_DIR": str(seeded_bugs.TARGET)}
            folder = seeded_bugs.copy() if rig.seeded else ROOT
            output = output_of(command, target | rig.environment, folder)
            passed = sum(map(int, re.findall(r"^test result: ok\. (\d+) passed", output, re.MULTILINE)))
    for line in re.findall(r'\{"rig": .*?\}', output):
        for key, value in json.loads(line).items():
            if isinstance(value, int):
                # each case of a parametrised test prints its own
                figures[key] = figures.get(key, 0) + value
    if rig.counts:
        figures[rig.counts] = passed
    say(f"{rig.found(figures) if not rig.check(figures) else figures} in {time.monotonic() - began:.0f} s")
    return figures


def run_python(rig: Rig) -> tuple[int, str]:
    """Runs the cases of a parametrised test in several processes. Returns the number that passed, and their output."""
    name = f"tests/python/{rig.run.partition(' ')[2]}"
    lines = output_of([*PYTEST, "--collect-only", "-q", name], rig.environment).splitlines()
    cases = [line for line in lines if "::" in line]
    shards = min(len(cases), 2 * (os.cpu_count() or 1))
    # without `--basetemp` the processes would concurrently delete the folders of earlier runs, and fail
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(shards) as pool:
        commands = [
            [*PYTEST, "-q", "-s", f"--basetemp={folder}/{shard}", *cases[shard::shards]] for shard in range(shards)
        ]
        outputs = list(pool.map(lambda command: output_of(command, rig.environment), commands))
    output = "\n".join(outputs)
    return sum(map(int, re.findall(r"^(\d+) passed", output, re.MULTILINE))), output


# --- the page -------------------------------------------------------------------------------------------------------


def promises_text(promised: dict[str, Any]) -> str:
    """The list. Each guarantee has an anchor, to which other documents link."""
    items = []
    for number, guarantee in enumerate(promised["guarantee"], 1):
        sentences = " ".join(promise["says"] for promise in guarantee["promises"])
        first = f"{number}. "
        text = f'{first}<a id="guarantee-{number}"></a>**{guarantee["title"]}.** {sentences}'
        items.append(
            textwrap.fill(text, 120, subsequent_indent=" " * len(first), break_on_hyphens=False, break_long_words=False)
        )
    return "\n".join(items) + "\n"


def figures_text(rows: list[str]) -> str:
    return "\n".join(["| for | what is tried | floor | last time |", "|---|---|---|---|", *rows]) + "\n"


def without_figures(table: str) -> list[str]:
    return [line.rsplit("|", 2)[0] for line in table.splitlines()]


def section(page: str, markers: re.Pattern[str]) -> re.Match[str]:
    found = markers.search(page)
    if found is None:
        raise Failure(f"{PAGE.name} has no part between the markers {markers.pattern}")
    return found


def write_page(promised: dict[str, Any], rigs: list[Rig], figures: dict[str, dict[str, int]]) -> None:
    """Writes the list and the table, with the figures of the rigs that ran, by their tests."""
    page = PAGE.read_text()
    written = section(page, FIGURES)["text"].splitlines()
    rows = []
    for rig in rigs:
        before = [line for line in written if f"| {rig.shows} |" in line]
        if rig.run in figures:
            rows.append(rig.row(rig.found(figures[rig.run])))
        elif before:
            rows.append(rig.row(before[0].rsplit("|", 2)[1].strip()))
        else:
            raise Failure(f"the page has no figures of a rig that did not run: {rig.shows}")
    for markers, text in ((PROMISE, promises_text(promised)), (FIGURES, figures_text(rows))):
        found = section(page, markers)
        page = page[: found.start("text")] + text + page[found.end("text") :]
    PAGE.write_text(page)


def wrong_page(promised: dict[str, Any], rigs: list[Rig]) -> list[str]:
    """Differences between the page and the guarantees, except the figures, which are of another machine."""
    page = PAGE.read_text()
    empty = dict.fromkeys((name for rig in rigs for name in [*rig.at_least, *rig.exactly]), 0)
    table = without_figures(figures_text([rig.row(rig.found(empty)) for rig in rigs]))
    wrong = []
    if section(page, PROMISE)["text"] != promises_text(promised):
        wrong.append("the list in docs/pages/guarantees.md is not that of tests/guarantees.toml: run `make guarantees`")
    if without_figures(section(page, FIGURES)["text"]) != table:
        wrong.append(
            "the table in docs/pages/guarantees.md is not that of tests/guarantees.toml: run `make guarantees`"
        )
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the page's list and table")
    parser.add_argument("--names", action="store_true", help="check the names and the page only; run nothing")
    parser.add_argument(
        "--only", metavar="TEXT", help="run the rigs whose test has this text in its name, and nothing else"
    )
    arguments = parser.parse_args()
    promised = tomllib.loads((ROOT / "tests" / "guarantees.toml").read_text())
    rigs = [Rig(**rig) for rig in promised["rig"]]
    chosen = [rig for rig in rigs if arguments.only is None or arguments.only in rig.run]
    try:
        wrong = [] if arguments.write else wrong_page(promised, rigs)
        tests = Tests(promised)
        wrong += wrong_names(promised, rigs, tests)
        if not chosen:
            wrong.append(f"no rig has {arguments.only!r} in its name")
        if not wrong and not arguments.names:
            if arguments.only is None:
                run_named(promised, rigs, tests)
            missing = [rig for rig in chosen if rig.needs and not is_available(rig.needs)]
            for rig in missing:
                say(f"skipped, {rig.needs} is not available: {rig.shows}")
                wrong += [f"{rig.needs} is required in CI, and is not available"] if "CI" in os.environ else []
            figures = {rig.run: run_rig(rig, tests) for rig in chosen if rig not in missing}
            wrong += [what for rig in chosen if rig.run in figures for what in rig.check(figures[rig.run])]
            if arguments.write and missing:
                wrong.append("the page was not written: a figure is missing")
            elif arguments.write and not wrong:
                write_page(promised, rigs, figures)
    except Failure as failure:
        wrong = [str(failure)]
    for what in wrong:
        say(f"FAILED: {what}")
    sentences = sum(len(guarantee["promises"]) for guarantee in promised["guarantee"])
    say(f"{len(promised['guarantee'])} guarantees in {sentences} sentences, {len(rigs)} rigs, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
