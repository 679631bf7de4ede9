"""What the start of the command line imports, and the calls of commands without typer."""

from __future__ import annotations

import inspect
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import corpus
import pytest
import typer
from scripts import run, write_script

from cordwood.cli import commands, direct
from cordwood.cli.app import app
from cordwood.cli.commands import HEADINGS, function_of
from cordwood.cli.declared import Declared, Option

LOG = corpus.partition("15-empty").path / "00000000000000000000.log"
GROUP: Any = typer.main.get_command(app)

IMPORTED = """
import sys
from cordwood.cli import main

assert main(sys.argv[1:]) == 0
print(*sorted(sys.modules), file=sys.stderr)
"""


def imported(*words: object, folder: Path, environment: dict[str, str]) -> set[str]:
    """The modules after a command, in a process of its own."""
    done = run(write_script(folder, IMPORTED), *words, env=environment)
    return set(done.stderr.splitlines()[-1].split())


def test_dump_imports_what_it_needs_and_no_more(tmp_path: Path, script_environment: dict[str, str]) -> None:
    modules = imported("dump", "--deep-iteration", LOG, folder=tmp_path, environment=script_environment)
    heavy = {"typer", "click", "rich", "pydantic", "pyarrow", "logging", "dataclasses", "inspect", "json", "csv"}
    assert modules & heavy == set()
    assert {name for name in modules if name.startswith("cordwood.cli.")} == {
        *("cordwood.cli.commands", "cordwood.cli.declared", "cordwood.cli.direct", "cordwood.cli.dump"),
        *("cordwood.cli.exit_codes", "cordwood.cli.formats", "cordwood.cli.output", "cordwood.cli.path"),
        *("cordwood.cli.limits", "cordwood.cli.progress", "cordwood.cli.run", "cordwood.cli.terminal"),
    }


def test_tables_as_json_import_neither_typer_nor_rich(tmp_path: Path, script_environment: dict[str, str]) -> None:
    data = corpus.GOLDEN / "16-data-dir"
    for words in (("groups", data, "--json"), ("transactions", data, "--json"), ("metadata", data, "--json")):
        modules = imported(*words, folder=tmp_path, environment=script_environment)
        assert modules & {"typer", "click", "rich", "pydantic", "pyarrow", "dataclasses"} == set()


def test_the_application_imports_no_command(script_environment: dict[str, str]) -> None:
    code = "import sys, cordwood.cli.app; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=script_environment, capture_output=True, text=True, check=True
    )
    modules = set(done.stdout.split())
    assert "typer" in modules
    assert modules & {f"cordwood.cli.{name.replace('-', '_')}" for name in HEADINGS} == set()
    assert modules & {"rich", "pyarrow"} == set()


def test_every_command_is_its_function_in_its_module() -> None:
    assert list(GROUP.commands) == list(HEADINGS)
    for name in HEADINGS:
        assert GROUP.commands[name].name == name
        assert function_of(name).__module__ == f"cordwood.cli.{name.replace('-', '_')}"
    assert "missing" not in GROUP.commands


def declarations(name: str) -> list[tuple[str, Any, Declared]]:
    """The parameters of a command, their types and declarations; those of typer are left out."""
    annotations = function_of(name).__annotations__
    given = [
        (key, one.__origin__, one.__metadata__[0]) for key, one in annotations.items() if hasattr(one, "__origin__")
    ]
    return [one for one in given if isinstance(one[2], Declared)]


DIRECT = [name for name in HEADINGS if declarations(name)]


def words_of(kind: Any, chance: random.Random) -> list[str]:
    """Values, right and wrong ones, and words that may be taken for something else."""
    odd = ["", "-", "--", "-o", "--json", "--help", "-5", "-2h", "a b", "=", "x=y", "é", "0", "1_000", " 7", "+3"]
    if kind is int:
        odd += ["7", "2147483647", "2147483648", "007"] * 3
    choices = [one for one in (kind, *get_args(kind)) if get_origin(one) is Literal]
    for choice in choices:
        odd += list(get_args(choice)) * 4
    return [chance.choice([*odd, "orders-0", "b.parquet", "/a"])]


@pytest.mark.parametrize("name", DIRECT)
def test_a_direct_call_has_the_arguments_that_typer_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random command lines: typer passes the same, or the line is left to it."""
    passed: list[dict[str, Any]] = []

    def record(**arguments: Any) -> None:
        passed.append(arguments)

    function = function_of(name)
    record.__annotations__ = dict(function.__annotations__)
    record.__doc__ = function.__doc__
    record.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    monkeypatch.setattr(commands, "function_of", lambda _: record)
    command = commands._command(name)  # noqa: SLF001
    chance = random.Random(17)
    declared = declarations(name)
    taken = 0
    for _ in range(1500):
        words: list[str] = []
        for key, kind, declaration in declared:
            if not isinstance(declaration, Option):
                words += [word for _ in range(chance.choice([0, 1, 1, 1, 2])) for word in words_of(kind, chance)]
            elif chance.random() < 1.5 / len(declared):
                option = chance.choice(declaration.names or ("--" + key.replace("_", "-"),))
                value = [] if kind is bool and chance.random() < 0.9 else words_of(kind, chance)
                words += [f"{option}={value[0]}"] if value and chance.random() < 0.3 else [option, *value]
        if chance.random() < 0.3:
            chance.shuffle(words)
        arguments = direct.arguments_of(function, words)
        if arguments is not None:
            taken += 1
            passed.clear()
            assert command(args=words, prog_name="cordwood", standalone_mode=False) is None
            assert passed == [arguments], words
            assert [type(value) for value in passed[0].values()] == [type(value) for value in arguments.values()], words
    assert taken > 100


def test_usual_lines_need_no_typer() -> None:
    for line, expected in (
        ("dump orders-0", {"paths": [Path("orders-0")]}),
        ("dump --deep-iteration --print-data-log a.log b.log", {"deep_iteration": True, "print_data_log": True}),
        ("dump --files a,b --verify-index-only", {"files": "a,b", "verify_index_only": True}),
        ("dump a --max-bytes=100 --value-decoder-class Long -o -", {"max_bytes": 100, "output": Path("-")}),
        ("groups /kafka --group a --group b", {"group": ["a", "b"], "topic": None}),
        ("metadata /kafka partitions --topic orders", {"words": ["/kafka", "partitions"], "topic": ["orders"]}),
        ("transactions /kafka --open", {"open_": True}),
    ):
        name, *words = line.split()
        arguments = direct.arguments_of(function_of(name), words)
        assert arguments is not None, line
        assert expected.items() <= arguments.items()
    for line in ("dump --help", "groups", "dump -- a", "dump --deep a", "dump a --max-bytes x", "dump -oX a", "cat a"):
        name, *words = line.split()
        assert direct.arguments_of(function_of(name), words) is None, line


def test_a_missing_extra_is_named(script_environment: dict[str, str]) -> None:
    code = "import sys; sys.modules[sys.argv.pop(1)] = None; from cordwood.cli import main; sys.exit(main())"
    for module, words in (("typer", ["--help"]), ("rich", ["groups", str(corpus.GOLDEN / "16-data-dir")])):
        done = subprocess.run(
            [sys.executable, "-c", code, module, *words],
            env=script_environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert done.stderr == f'cordwood: the command line needs {module}: pip install "cordwood[cli]"\n'
