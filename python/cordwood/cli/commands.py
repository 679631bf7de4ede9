"""The commands, each of which is imported when it is needed: importing all takes longer than most of them run."""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from cordwood.cli.declared import for_typer
from cordwood.cli.exit_codes import stop_when_unread

__all__ = [
    "CHECK",
    "COMPLETION_VARIABLE",
    "HEADINGS",
    "LOOK",
    "MEND",
    "WITHOUT_WARNINGS",
    "WRITE",
    "Commands",
    "function_of",
]

COMPLETION_VARIABLE = "_CORDWOOD_COMPLETE"
"""The variable of the environment with which the script of `cordwood completion` asks for words."""

LOOK, CHECK, MEND, WRITE = "Look", "Check", "Mend", "Write"
"""The headings of the commands in the help, in this order."""

HEADINGS = {
    "ls": LOOK,
    "find": LOOK,
    "cat": LOOK,
    "count": LOOK,
    "trace": LOOK,
    "dump": LOOK,
    "groups": LOOK,
    "transactions": LOOK,
    "producers": LOOK,
    "metadata": LOOK,
    "positions": LOOK,
    "report": LOOK,
    "completion": LOOK,
    "copy": MEND,
    "verify": CHECK,
    "diff": CHECK,
    "recover": MEND,
    "reindex": MEND,
    "repair": MEND,
    "carve": MEND,
    "spark-writes": MEND,
    "append": WRITE,
    "truncate": WRITE,
    "apply-retention": WRITE,
    "compact": WRITE,
}
"""The commands and their headings. A command is the function of its name in the module of its name."""

WITHOUT_WARNINGS = frozenset({"completion", "dump"})
"""The commands that open no log, and so have no warnings about one."""

_CONTEXTS = {
    # a target may be negative, and -2h is a time, not the option -h
    "trace": {"ignore_unknown_options": True, "help_option_names": ["--help"]},
}


def function_of(name: str) -> Callable[..., None]:
    """Import a command."""
    function = name.replace("-", "_")
    found: Callable[..., None] = getattr(import_module(f"cordwood.cli.{function}"), function)
    return found


class Commands(Mapping[str, Any]):
    """The commands of typer by name."""

    def __init__(self) -> None:
        """Import nothing yet."""
        self._imported: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  (typer's own classes are private)
        """Import a command."""
        if name not in HEADINGS:
            raise KeyError(name)
        if name not in self._imported:
            self._imported[name] = _command(name)
        return self._imported[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(HEADINGS)

    def __len__(self) -> int:
        """Return the number of commands."""
        return len(HEADINGS)


def _command(name: str) -> Any:  # noqa: ANN401
    import typer  # noqa: PLC0415  (see `direct`)

    from cordwood.cli.once import CommandWithOptionsOnce  # noqa: PLC0415

    # an application of one command is this command
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    declare = alone.command(name, cls=CommandWithOptionsOnce, context_settings=_CONTEXTS.get(name))
    declare(for_typer(stop_when_unread(function_of(name))))
    return typer.main.get_command(alone)
