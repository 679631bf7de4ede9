"""The command lines in the README, in the documentation and in the help: their commands and options exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from cordwood.cli.commands import HEADINGS, Commands
from cordwood.cli.help import QUESTIONS

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "pages").rglob("*.md"))]


def lines() -> Iterator[tuple[str, str]]:
    """Where each is, and the line; what begins with a command's name and has no argument is only its name."""
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        console = "\n".join(re.findall(r"```console\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ")
        found = re.findall(r"^\$ (.*)$", console, re.MULTILINE) + re.findall(r"`(cordwood [^`\n]+)`", text)
        for line in found:
            for part in re.split(r" \| ", line):
                if part.startswith("cordwood "):
                    yield str(path.relative_to(ROOT)), part
    for _, command in QUESTIONS:
        yield "cordwood --help", command


LINES = sorted(set(lines()))


def test_there_are_command_lines() -> None:
    assert len(LINES) > 40
    assert {name for name, _ in LINES} >= {"README.md", "docs/pages/guides/operate.md", "cordwood --help"}


def test_each_question_of_the_help_is_in_the_table_of_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## Questions and commands\n")[2]
    rows = re.findall(r"^\| (.*) \| `(cordwood [^`]+)`.* \|$", text.partition("\n## ")[0], re.MULTILINE)
    answers = {question.replace("`", ""): command for question, command in rows}
    assert len(answers) > 15
    for question, command in QUESTIONS:
        assert answers[question] == command


def options_given(line: str) -> set[str]:
    """The options that a command line gives. An unknown one, or one without its value, raises."""
    _, name, *words = shlex.split(line, comments=True)
    assert name in HEADINGS
    command = Commands()[name]
    context = command.make_context(name, [], resilient_parsing=True)
    context.resilient_parsing = False
    values, _, _ = command.make_parser(context).parse_args([word for word in words if word != "…"])
    return set(values)


@pytest.mark.parametrize("line", sorted({line for _, line in LINES} - {"cordwood --help", "cordwood --version"}))
def test_the_command_and_its_options_exist(line: str) -> None:
    options_given(line)


def test_an_unknown_option_and_a_missing_value_are_noticed() -> None:
    assert "topics" in options_given("cordwood cat data --topic orders")
    for wrong in ("cordwood cat data --topics orders", "cordwood cat data --topic"):
        with pytest.raises(Exception, match="--topic"):
            options_given(wrong)
