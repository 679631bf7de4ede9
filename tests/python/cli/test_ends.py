"""How commands end: a reader of standard output that is gone, a path that is missing, Ctrl-C while it starts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import corpus
import pytest
import typer
from commands import cordwood, environment, run_with
from scripts import write_script

import cordwood as cw
from cordwood.cli import main
from cordwood.cli.app import app
from cordwood.cli.commands import HEADINGS
from cordwood.cli.exit_codes import SKIPPING_DAMAGE

GROUP = typer.main.get_command(app)
PAYMENTS = corpus.partition("11-transactions").path
DATA = corpus.GOLDEN / "16-data-dir"
SMALL = corpus.GOLDEN / "01-small/tickets-0"
FLIPPED = corpus.GOLDEN / "damaged/flip-record/tickets-0"
TORN = corpus.GOLDEN / "damaged/torn-last-byte/tickets-0"

# words of each command, and whether it writes while it reads: then it ends at once, as `cat` does
PRINTING: list[tuple[list[object], bool]] = [
    (["ls", DATA], False),
    (["ls", SMALL, "--json"], False),
    (["find", SMALL, "--offset", 5], False),
    (["cat", SMALL], True),
    (["cat", SMALL, "--format", "parquet"], True),
    (["count", DATA], False),
    (["count", DATA, "--csv"], False),
    (["count", FLIPPED, "--csv", "--on-damage", "skip"], False),
    (["trace", SMALL / "00000000000000000000.index", 5], False),
    (["dump", SMALL], True),
    (["groups", DATA], False),
    (["groups", DATA, "--json"], False),
    (["groups", "{flipped}", "--json", "--on-damage", "skip"], False),
    (["groups", "{flipped}", "--format", "arrow", "--on-damage", "skip"], False),
    (["transactions", DATA], False),
    (["metadata", DATA], False),
    (["metadata", DATA, "records", "--format", "csv"], False),
    (["positions", "{committed}"], False),
    (["report", SMALL, "-o", "-"], True),
    (["completion", "bash"], True),
    (["copy", SMALL, "{new}"], False),
    (["verify", SMALL], False),
    (["verify", FLIPPED], False),
    (["verify", FLIPPED, "--json"], False),
    (["verify", FLIPPED, "--as-kafka", "--unclean"], False),
    (["verify", FLIPPED, "--as-kafka", "--unclean", "--json"], False),
    (["diff", SMALL, FLIPPED], False),
    (["producers", PAYMENTS], False),
    (["recover", TORN], False),
    (["reindex", SMALL], False),
    (["repair", TORN], False),
    (["carve", SMALL], False),
    (["spark-writes", DATA], False),
    (["append", "{new}"], False),
    (["truncate", SMALL, "--to", 5], False),
    (["apply-retention", SMALL], False),
    (["compact", SMALL], False),
    (["--help"], True),
    (["verify", "--help"], True),
    (["--version"], True),
]


def flip(*logs: Path) -> None:
    """Change a byte of the last record of each `.log` that has one."""
    for log in logs:
        if log.stat().st_size > 0:
            data = bytearray(log.read_bytes())
            data[-2] ^= 1
            log.chmod(0o644)
            log.write_bytes(data)


@pytest.mark.parametrize(("words", "is_stream"), PRINTING)
def test_a_closed_pipe_ends_every_command_quietly(tmp_path: Path, words: list[object], is_stream: bool) -> None:
    def arguments(name: str) -> tuple[object, ...]:
        paths = {"{new}": str(tmp_path / name), "{committed}": str(committed), "{flipped}": str(flipped)}
        return tuple(paths.get(str(word), word) for word in words)

    committed = tmp_path / "committed-0"
    shutil.copytree(SMALL, committed)
    cw.Log(committed).position("billing").commit(5)

    flipped = tmp_path / "flipped"
    if "{flipped}" in words:
        shutil.copytree(DATA, flipped)
        flip(*flipped.glob("__consumer_offsets-*/*.log"))

    expected = cordwood(*arguments("new-0"))
    assert expected.stdout
    assert expected.returncode == 1 or "--on-damage" not in words
    read_out, write_out = os.pipe()
    # nobody will read what the command writes
    os.close(read_out)
    read_error, write_error = os.pipe()
    with ThreadPoolExecutor() as pool, os.fdopen(read_error, "rb") as error_file:
        error = pool.submit(error_file.read)
        files = [os.open(os.devnull, os.O_RDONLY), write_out, write_error]
        code = run_with(files, arguments("other-0"), environment())
        said = error.result().decode()
    assert code == (0 if is_stream else expected.returncode)
    for wrong in ("Traceback", "Exception ignored", "Broken pipe", "BrokenPipe"):
        assert wrong not in said
    assert said.replace("other-0", "new-0") == expected.stderr.decode() or is_stream


def test_every_command_is_among_those_that_print() -> None:
    assert {words[0] for words, _ in PRINTING} >= set(HEADINGS)


@pytest.mark.parametrize("arguments", [["ls", DATA], ["verify", FLIPPED], ["cat", SMALL]], ids=str)
def test_a_process_of_its_own_ends_quietly_too(arguments: list[object], script_environment: dict[str, str]) -> None:
    """With what Python does at its exit."""
    words = [sys.executable, "-m", "cordwood.cli", *map(str, arguments)]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, env=script_environment, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (int(arguments[0] == "verify"), b"")


# the words after the name of a command whose first path is missing
MISSING: dict[str, list[object]] = {
    **{name: ["{missing}"] for name in HEADINGS},
    "find": ["{missing}", "--offset", 5],
    "trace": ["{missing}/00000000000000000000.index", 5],
    "copy": ["{missing}", "{new}"],
    "diff": [SMALL, "{missing}"],
    "append": ["{missing}/folder-0"],
    "truncate": ["{missing}", "--to", 5],
    "carve": ["{missing}", "--into", "{new}"],
}


@pytest.mark.parametrize("name", sorted(set(HEADINGS) - {"completion", "dump"}))
def test_a_missing_path_is_wrong_usage(tmp_path: Path, name: str) -> None:
    words = [
        str(word).replace("{missing}", str(tmp_path / "absent")).replace("{new}", str(tmp_path / "new-0"))
        for word in MISSING[name]
    ]
    done = cordwood(name, *words)
    assert (done.returncode, done.stdout) == (2, b""), done.stderr
    assert str(tmp_path / "absent") in done.stderr.decode()
    assert not list(tmp_path.iterdir())


def test_a_file_in_place_of_a_directory_is_wrong_usage(tmp_path: Path) -> None:
    file = tmp_path / "orders-0"
    file.write_bytes(b"")
    for name in ("ls", "cat", "count", "recover", "repair", "report"):
        done = cordwood(name, file)
        assert (done.returncode, done.stdout) == (2, b""), name
        assert str(file) in done.stderr.decode()


def test_a_file_that_is_missing_elsewhere_is_no_wrong_usage(tmp_path: Path) -> None:
    """A directory without a segment has nothing, and a folder of the output that is missing is not the log."""
    (tmp_path / "empty-0").mkdir()
    assert cordwood("cat", tmp_path / "empty-0").returncode == 1
    assert cordwood("cat", SMALL, "-o", tmp_path / "absent" / "out.csv").returncode == 1


INTERRUPTED = """
import sys

interrupted = sys.argv[1]

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == interrupted:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
module, function = sys.argv[2].split(":")
sys.argv[1:] = sys.argv[3:]
# as the script that an installation creates
sys.exit(getattr(__import__(module), function)())
"""


@pytest.mark.parametrize("module", ["cordwood", "cordwood._core", "cordwood.cli.run", "typer", "rich.cells"])
def test_ctrl_c_while_modules_are_imported_ends_with_130(
    tmp_path: Path, module: str, script_environment: dict[str, str]
) -> None:
    project = tomllib.loads((corpus.GOLDEN.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    entry = project["project"]["scripts"]["cordwood"]
    assert entry.partition(":")[0] in project["tool"]["maturin"]["python-packages"]
    command = [sys.executable, str(write_script(tmp_path, INTERRUPTED)), module, entry, "ls", str(SMALL)]
    done = subprocess.run(command, env=script_environment, capture_output=True, check=False)
    # typer ends the line on which the terminal shows ^C
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, b"", b"")


def test_advice_at_damage_names_an_option_of_the_command(tmp_path: Path) -> None:
    skipping = {
        name
        for name, command in GROUP.commands.items()  # type: ignore[attr-defined]
        if any("--on-damage" in parameter.opts for parameter in command.params)
    }
    # `dump` goes on past damage where kafka-dump-log does
    assert skipping == SKIPPING_DAMAGE
    path = Path(shutil.copytree(FLIPPED, tmp_path / "tickets-0"))
    for words in (
        ["find", path, "--offset", 302],
        ["cat", path],
        ["count", path, "--by", "key"],
        ["copy", path, tmp_path / "new-0"],
        ["transactions", path],
        ["reindex", path],
        ["recover", path],
        ["repair", path],
        ["report", path, "-o", tmp_path / "report.html"],
    ):
        name = str(words[0])
        error = cordwood(*words).stderr.decode()
        advice = re.findall(r"--on-damage skip|cordwood repair|the policy salvage", error)
        if name in {"recover", "report"}:
            # it is in the plan, and on the page
            assert set(advice) <= {"cordwood repair"}
        elif name in skipping:
            assert advice in (["--on-damage skip"], [])
        else:
            assert advice == ["the policy salvage" if name == "repair" else "cordwood repair"], error


@pytest.mark.parametrize("code", [0, 3, None, "a sentence"])
def test_an_exit_within_a_command_keeps_its_code(monkeypatch: pytest.MonkeyPatch, code: object) -> None:
    def ends(**_: object) -> None:
        raise SystemExit(code)

    monkeypatch.setattr("cordwood.cli.app.app", ends)
    with pytest.raises(SystemExit) as raised:
        main(["verify", str(SMALL)])
    assert raised.value.code == code
