"""The application: all commands."""

from collections.abc import Sequence
from typing import Annotated

import typer

import cordwood
from cordwood.cli import (
    append,
    apply_retention,
    carve,
    cat,
    completion,
    copy,
    count,
    diff,
    dump,
    find,
    groups,
    ls,
    metadata,
    recover,
    reindex,
    repair,
    report,
    trace,
    transactions,
    truncate,
    verify,
)
from cordwood.cli.completion import complete_if_asked
from cordwood.cli.exit_codes import exit_code_of, stop_when_unread
from cordwood.cli.help import CHECK, LOOK, MEND, WRITE, GroupedCommands
from cordwood.cli.log_warnings import log_to_stderr

__all__ = ["run"]

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
        typer.echo(f"cordwood {cordwood.__version__}")
        raise typer.Exit


@app.callback()
def cordwood_(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Open Kafka's partition directories without a broker.

    Commands that change files print what they would do, and do it with the option that they name, such as --yes.
    Only append writes at once; copy and carve write to their destination. All others only read, also beside a running
    broker.

    \b
    Exit codes: 0 done, 1 nothing found or an error, 2 wrong usage, 130 Ctrl-C.
    Warnings about a log go to stderr and do not change the exit code.
    """  # noqa: D301  (\b keeps the lines as they are)
    del version


app.command("ls", rich_help_panel=LOOK)(stop_when_unread(ls.ls))
app.command("find", rich_help_panel=LOOK)(stop_when_unread(find.find))
app.command("cat", rich_help_panel=LOOK)(stop_when_unread(cat.cat))
app.command("count", rich_help_panel=LOOK)(stop_when_unread(count.count))
# a target may be negative, and -2h is a time, not the option -h
app.command(
    "trace",
    rich_help_panel=LOOK,
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
)(stop_when_unread(trace.trace))
app.command("dump", rich_help_panel=LOOK)(stop_when_unread(dump.dump))
app.command("groups", rich_help_panel=LOOK)(stop_when_unread(groups.groups))
app.command("transactions", rich_help_panel=LOOK)(stop_when_unread(transactions.transactions))
app.command("metadata", rich_help_panel=LOOK)(stop_when_unread(metadata.metadata))
app.command("report", rich_help_panel=LOOK)(stop_when_unread(report.report))
app.command("completion", rich_help_panel=LOOK)(stop_when_unread(completion.completion))
app.command("copy", rich_help_panel=MEND)(stop_when_unread(copy.copy))
app.command("verify", rich_help_panel=CHECK)(stop_when_unread(verify.verify))
app.command("diff", rich_help_panel=CHECK)(stop_when_unread(diff.diff))
app.command("recover", rich_help_panel=MEND)(stop_when_unread(recover.recover))
app.command("reindex", rich_help_panel=MEND)(stop_when_unread(reindex.reindex))
app.command("repair", rich_help_panel=MEND)(stop_when_unread(repair.repair))
app.command("carve", rich_help_panel=MEND)(stop_when_unread(carve.carve))
app.command("append", rich_help_panel=WRITE)(stop_when_unread(append.append))
app.command("truncate", rich_help_panel=WRITE)(stop_when_unread(truncate.truncate))
app.command("apply-retention", rich_help_panel=WRITE)(stop_when_unread(apply_retention.apply_retention))


def run(argv: Sequence[str]) -> int:
    """Run a command; return the exit code."""
    complete_if_asked()
    try:
        with log_to_stderr():
            code = app(args=list(argv) or ["--help"], prog_name="cordwood", standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  (the outermost handler: a message, no traceback)
        return exit_code_of(error)
    return code if isinstance(code, int) else 0
