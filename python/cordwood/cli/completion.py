"""`cordwood completion`: print a script with which a shell completes commands, options and paths."""

import os
import sys
from typing import Annotated, Literal

import typer

from cordwood.cli.commands import COMPLETION_VARIABLE

__all__ = ["complete_if_asked", "completion"]


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="The shell.", show_choices=True)],
) -> None:
    """Print a script that completes commands, options, their values and paths in a shell.

    \b
    echo 'source <(cordwood completion bash)' >> ~/.bashrc
    cordwood completion zsh > "${fpath[1]}/_cordwood"
    cordwood completion fish > ~/.config/fish/completions/cordwood.fish
    """  # noqa: D301
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # noqa: PLC0415  (not in __all__)

    sys.stdout.write(get_completion_script(prog_name="cordwood", complete_var=COMPLETION_VARIABLE, shell=shell) + "\n")


def complete_if_asked() -> None:
    """Prepare typer for a call of the script, which asks for words with a variable of the environment."""
    if COMPLETION_VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]  # noqa: PLC0415  (not in __all__)

        completion_init()
