"""Every command with every kind of wrong usage: the errors use the words of the command line, not those of Python."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import corpus
import pytest
import typer
from scripts import Command

from cli.test_words import PYTHONS
from cordwood.cli.app import app
from cordwood.cli.formats import OTHER_COLUMNS, RECORD_COLUMNS
from cordwood.cli.help import QUESTIONS

GROUP: Any = typer.main.get_command(app)
WRONG = ("nonsense", "-1", "")
# names with an underscore that the command line has too
NAMES = {"read_committed", "read_uncommitted", *RECORD_COLUMNS, *OTHER_COLUMNS}


def options() -> list[tuple[str, str]]:
    """The long options that take a value, of each command."""
    return [
        (name, max(parameter.opts, key=len))
        for name, command in GROUP.commands.items()
        for parameter in command.params
        if parameter.param_type_name == "option" and not parameter.is_flag and parameter.name != "help"
    ]


def checked(help_text: str, code: int, out: str, error: str, folder: Path) -> None:
    text = error.replace(str(folder), "DIR")
    # such as the values of an option
    known = NAMES | set(re.findall(r"\w+", help_text))
    said = [word for word in re.findall(r"\b[A-Za-z]+(?:_[A-Za-z]+)+\b", text) if word not in known]
    assert said == [], text
    assert not PYTHONS.search(text), text
    assert "Traceback" not in text
    assert "a bug in cordwood" not in text
    # of pydantic
    assert "Value error" not in text
    assert code in (0, 1, 2)
    if code == 2:
        assert out == ""
        assert error.splitlines()[-1].startswith("cordwood: ")


@pytest.fixture(autouse=True)
def in_places(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An option such as -o may name a file that is created."""
    monkeypatch.chdir(places)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies, which no wrong command changes, but nothing else would notice if it did."""
    folder = tmp_path_factory.mktemp("usage")
    shutil.copytree(corpus.GOLDEN / "16-data-dir", folder / "data")
    return folder


def arguments_of(command: str, places: Path) -> list[str]:
    """Valid values for the arguments of a command, so that only the option is wrong."""
    partition = places / "data" / "cities-0"
    values = {
        "index": partition / "00000000000000000000.index",
        "target": "5",
        "shell": "bash",
        "destination": places / "new-0",
        "dst": places / "new-0",
    }
    required = [parameter for parameter in GROUP.commands[command].params if parameter.param_type_name == "argument"]
    return [str(values.get(parameter.name, partition)) for parameter in required]


@pytest.mark.parametrize(("name", "option"), options(), ids=str)
def test_wrong_values_of_options(command: Command, places: Path, name: str, option: str) -> None:
    help_text = command(name, "--help")[1]
    for value in WRONG:
        code, out, error = command(name, *arguments_of(name, places), f"{option}={value}")
        checked(help_text, code, out, error, places)


@pytest.mark.parametrize("name", GROUP.commands)
def test_no_option_silently_replaces_one_before_it(command: Command, places: Path, name: str) -> None:
    arguments = arguments_of(name, places)
    checked_options = 0
    for parameter in GROUP.commands[name].params:
        if parameter.param_type_name != "option" or parameter.name == "help":
            continue
        for spelling in (max(parameter.opts, key=len), *parameter.opts):
            checked_options += 1
            if parameter.is_flag:
                words = [spelling, *(parameter.secondary_opts or [spelling])]
            else:
                # both are valid as far as the parser knows, and differ
                words = [spelling, "1", spelling, "2"]
            parser = GROUP.commands[name].make_parser(GROUP.commands[name].context_class(GROUP.commands[name]))
            given = parser.parse_args([*arguments, *words])[0][parameter.name]
            if parameter.multiple:
                assert given == ["1", "2"]
                continue
            if parameter.is_flag and not parameter.secondary_opts:
                assert given is True
                continue
            code, out, error = command(name, *arguments, *words)
            assert (code, out) == (2, ""), words
            assert f"{max(parameter.opts, key=len)}: expected at most once, found 2 times" in error
    assert checked_options or name == "completion"


def test_a_setting_is_given_once(command: Command, places: Path) -> None:
    partition = places / "data" / "cities-0"
    code, _, error = command("compact", partition, "--set", "segment.bytes=2000", "--set", "segment.bytes=1000")
    assert code == 2
    assert "--set segment.bytes: expected each setting at most once" in error


@pytest.mark.parametrize("name", GROUP.commands)
def test_wrong_arguments(command: Command, places: Path, name: str) -> None:
    help_text = command(name, "--help")[1]
    known = arguments_of(name, places)
    for given in (
        [],
        ["--no-such-option", *known],
        [""] * len(known),
        [str(places / "absent") for _ in known],
        [str(places / "data" / "meta.properties") for _ in known],
        [str(places) for _ in known],
        [*known, "one", "more", "argument"],
    ):
        code, out, error = command(name, *given)
        checked(help_text, code, out, error, places)


@pytest.mark.parametrize("name", GROUP.commands)
def test_help_names_no_argument_of_python(command: Command, name: str) -> None:
    code, out, _ = command(name, "--help")
    assert code == 0
    said = {parameter.name for parameter in GROUP.commands[name].params if "_" in parameter.name}
    assert not [word for word in said if re.search(rf"\b{word}\b", out)]
    assert "dry-run" not in out
    assert "cordwood retain" not in out


def test_the_top_help_answers_questions_and_lists_all_commands(command: Command) -> None:
    code, out, _ = command("--help")
    assert code == 0
    for name in GROUP.commands:
        assert re.search(rf"(?m)^  {name} ", out)
    for question, example in QUESTIONS:
        _, name, *words = example.split()
        if name not in GROUP.commands:
            assert question not in out
            continue
        assert re.search(rf"(?m)^  {re.escape(question)} +{re.escape(example)}$", out)
        known = {option for parameter in GROUP.commands[name].params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known
    assert "\nOther:" not in out, "every command names its section"
