"""The application of typer: all commands."""

from typing import Annotated

import typer

from cordwood.cli.help import GroupedCommands

__all__ = ["app"]

app = typer.Typer(
    name="cordwood",
    cls=GroupedCommands,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _version(is_given: bool) -> None:
    if is_given:
        from cordwood.cli.version import versions  # noqa: PLC0415  (reads the metadata of packages)

        typer.echo(versions())
        raise typer.Exit


@app.callback()
def cordwood_(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the versions of cordwood and of what it uses."
        ),
    ] = False,
) -> None:
    """Open Kafka's partition directories without a broker.

    Commands that change files print what they would do, and do it with the option that they name, such as --yes.
    Only append writes at once; copy and carve write to their destination. All others only read, also beside a running
    broker.

    \b
    Exit codes: 0 done, 1 nothing found or an error, 2 wrong usage or a missing path, 130 Ctrl-C.
    Warnings about a log go to stderr and do not change the exit code.
    """  # noqa: D301  (\b keeps the lines as they are)
    del version
