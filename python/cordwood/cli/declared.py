"""Declarations of a command's arguments and options, for typer and for the direct call.

They have the settings of typer's own, without importing typer, which takes longer than most commands run.
"""

from collections.abc import Callable
from typing import Annotated, Any, get_origin

__all__ = ["Argument", "Declared", "Option", "for_typer"]


class Declared:
    """The settings of an argument or option, under typer's names."""

    def __init__(self, *names: str, **settings: Any) -> None:  # noqa: ANN401  (the settings of typer)
        """Declare a parameter. *names*: of an option, such as `--output`; by default the name of the parameter."""
        self.names = names
        self.settings = settings


class Argument(Declared):
    """A positional argument."""


class Option(Declared):
    """An option."""


def for_typer(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the declarations in the signature of a command by typer's."""
    import inspect  # noqa: PLC0415  (typer imports it too)

    import typer  # noqa: PLC0415

    made = {Argument: typer.Argument, Option: typer.Option}

    def replaced(annotation: Any) -> Any:  # noqa: ANN401
        if get_origin(annotation) is not Annotated:
            return annotation
        declared = annotation.__metadata__[0]
        if not isinstance(declared, Declared):
            return annotation
        return Annotated[annotation.__origin__, made[type(declared)](*declared.names, **declared.settings)]

    signature = inspect.signature(command)
    parameters = [
        parameter.replace(annotation=replaced(parameter.annotation)) for parameter in signature.parameters.values()
    ]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return command
