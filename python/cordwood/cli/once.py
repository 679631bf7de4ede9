"""The class of the commands of typer: an option that is not a list is given once.

Otherwise the last value would silently replace the first.
"""

from collections import Counter
from typing import Any

from typer.core import TyperCommand

__all__ = ["CommandWithOptionsOnce"]


class CommandWithOptionsOnce(TyperCommand):
    """A command that refuses an option that is given more than once, unless all of its values are used."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  (typer's own classes are private)
        """Parse the words of the command line."""
        if not ctx.resilient_parsing:
            _, _, given = self.make_parser(ctx).parse_args(args=list(args))
            for option, times in Counter(given).items():
                if times > 1 and _replaces(option):
                    ctx.fail(f"{max(option.opts, key=len)}: expected at most once, found {times} times")
        return super().parse_args(ctx, args)


def _replaces(parameter: Any) -> bool:  # noqa: ANN401
    """Return whether the value of an option replaces the one before. A flag without an opposite has only one value."""
    is_option = parameter.param_type_name == "option"
    return is_option and not parameter.multiple and not (parameter.is_flag and not parameter.secondary_opts)
