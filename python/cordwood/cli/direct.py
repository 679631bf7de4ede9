"""Calls of commands without typer, for command lines that are valid beyond doubt.

Importing typer and parsing with it takes longer than most commands run. What is parsed here means the same to typer.
Everything else, such as a mistake, `--help`, or an abbreviation, is left to typer.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from cordwood.cli.declared import Argument, Declared, Option

__all__ = ["arguments_of"]

_KNOWN = {"help", "hidden", "max", "metavar", "min", "parser", "show_default"}
_NUMBER = re.compile(r"-?[0-9]{1,18}")


class _Parameter(NamedTuple):
    name: str
    declared: Declared
    kind: Any
    """The type of a value."""
    is_list: bool

    @property
    def is_flag(self) -> bool:
        return self.kind is bool

    @property
    def options(self) -> tuple[str, ...]:
        return self.declared.names or ("--" + self.name.replace("_", "-"),)


class _NotPlainError(ValueError):
    """Typer decides."""


def arguments_of(command: Callable[..., None], words: Sequence[str]) -> dict[str, Any] | None:
    """Return what typer would pass to a command for these words; `None` if that is not certain."""
    try:
        return _parse(list(_parameters(command)), command, words)
    except _NotPlainError:
        return None


def _parameters(command: Callable[..., None]) -> Iterator[_Parameter]:
    annotations: dict[str, Any] = command.__annotations__
    for name, annotation in annotations.items():
        if name == "return":
            continue
        if get_origin(annotation) is not Annotated or not isinstance(annotation.__metadata__[0], Declared):
            raise _NotPlainError
        declared = annotation.__metadata__[0]
        if not _KNOWN.issuperset(declared.settings):
            raise _NotPlainError
        kind: Any = annotation.__origin__
        is_optional = get_origin(kind) in {Union, UnionType}
        if is_optional:
            kind, *others = (one for one in get_args(kind) if one is not NoneType)
            if others:
                raise _NotPlainError
        is_list = get_origin(kind) is list
        if is_list:
            (kind,) = get_args(kind)
        parameter = _Parameter(name, declared, kind, is_list)
        if parameter.is_flag and (is_optional or not declared.names or any("/" in one for one in declared.names)):
            raise _NotPlainError
        yield parameter


def _parse(parameters: Sequence[_Parameter], command: Callable[..., None], words: Sequence[str]) -> dict[str, Any]:
    options = {name: one for one in parameters if isinstance(one.declared, Option) for name in one.options}
    given: dict[str, list[Any]] = {}
    positional = []
    rest = iter(words)
    for word in rest:
        if not word:
            raise _NotPlainError
        if word[0] != "-" or word == "-":
            positional.append(word)
            continue
        name, equals, value = word.partition("=")
        option = options.get(name)
        if option is None or (not option.is_list and option.name in given):
            raise _NotPlainError
        if equals and (option.is_flag or not name.startswith("--")):
            raise _NotPlainError
        if not option.is_flag:
            value = value if equals else next(rest, "")
        given.setdefault(option.name, []).append(True if option.is_flag else _value(option, value))
    _take_positional([one for one in parameters if isinstance(one.declared, Argument)], positional, given)
    defaults = _defaults(command)
    if any(one.name not in given and one.name not in defaults for one in parameters):
        raise _NotPlainError
    return {
        one.name: (given[one.name] if one.is_list else given[one.name][0]) if one.name in given else defaults[one.name]
        for one in parameters
    }


def _take_positional(arguments: Sequence[_Parameter], words: list[str], given: dict[str, list[Any]]) -> None:
    for argument in arguments:
        if argument.is_list and argument is not arguments[-1]:
            raise _NotPlainError
        taken, words = (words, []) if argument.is_list else (words[:1], words[1:])
        if taken:
            given[argument.name] = [_value(argument, word) for word in taken]
    if words:
        raise _NotPlainError


def _defaults(command: Callable[..., None]) -> dict[str, Any]:
    names = command.__code__.co_varnames[: command.__code__.co_argcount]
    defaults = command.__defaults__ or ()
    return dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))


def _value(parameter: _Parameter, word: str) -> Any:  # noqa: ANN401
    """Return the value of a word. One that begins like an option may be a mistake."""
    settings = parameter.declared.settings
    if not word or (word[0] == "-" and word != "-" and not _NUMBER.fullmatch(word)):
        raise _NotPlainError
    if "parser" in settings:
        try:
            return settings["parser"](word)
        except Exception as error:
            raise _NotPlainError from error
    if parameter.kind is str:
        return word
    if parameter.kind is Path:
        return Path(word)
    if parameter.kind is int and _NUMBER.fullmatch(word):
        number = int(word)
        low, high = settings.get("min"), settings.get("max")
        if (low is None or low <= number) and (high is None or number <= high):
            return number
    if get_origin(parameter.kind) is Literal and word in get_args(parameter.kind):
        return word
    raise _NotPlainError
