"""The help of the application: its commands by purpose."""

from typing import Any

from typer.core import TyperGroup

from cordwood.cli.commands import CHECK, HEADINGS, LOOK, MEND, WRITE, Commands

__all__ = ["QUESTIONS", "GroupedCommands"]

QUESTIONS = (
    ("Which topics fill the disk?", "cordwood ls /kafka --by topic --sort size"),
    ("The last five records", "cordwood cat orders-0 --last 5"),
    ("The last two hours", "cordwood cat orders-0 --since -2h"),
    ("New records, as they arrive", "cordwood cat orders-0 --follow"),
    ("Records per hour", "cordwood count orders-0 --by hour"),
    ("What is in __consumer_offsets?", "cordwood groups /kafka"),
    ("Is it corrupt?", "cordwood verify /kafka"),
    ("What can be saved?", "cordwood repair orders-0 --policy salvage"),
)
"""Frequent questions, and the command that answers each. The table of the README has these and more."""


class GroupedCommands(TyperGroup):
    """Lists the commands in sections, after answers to frequent questions. Each is imported when it is needed."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401
        """Create the group."""
        super().__init__(**settings)
        # typer only reads it
        self.commands: Any = Commands()

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002  (typer's own classes are private)
        """Return the names, without importing the commands."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401  (typer's own classes are private)
        """Write a section for each heading. Typer itself does so only with markup of rich."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        shown = {name: command for name, command in commands.items() if command is not None and not command.hidden}
        answers = [(question, example) for question, example in QUESTIONS if example.split()[1] in shown]
        with formatter.section("Questions"):
            formatter.write_dl(answers)
        # one column for all sections
        width = max(map(len, shown))
        for heading in (LOOK, CHECK, MEND, WRITE):
            rows = [
                (name.ljust(width), command.get_short_help_str(formatter.width - width - 6))
                for name, command in shown.items()
                if HEADINGS[name] == heading
            ]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
