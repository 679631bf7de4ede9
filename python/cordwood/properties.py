"""Properties: the files that Java's `java.util.Properties` reads, as texts by name."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from cordwood.errors import ConfigError

__all__ = ["read", "refused", "shown", "texts"]

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u.{0,4}|.|$)", re.DOTALL)
_HEX = re.compile("u[0-9a-fA-F]{4}")
# the key, which ends at the first separator that no backslash escapes; the separator; the value
_PAIR = re.compile(r"((?:[^\\ \t\f=:]|\\.)*)[ \t\f]*(?:[=:][ \t\f]*)?(.*)", re.DOTALL)


def read(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read a `.properties` file as Java does, in ISO 8859-1; what is named twice has its last value."""
    try:
        text = Path(path).read_text(encoding="latin-1")
    except ValueError:
        # a NUL, or a surrogate that stands for no byte
        raise refused("properties", "a path that a file can have", shown(path)) from None
    return parse(text)


def parse(text: str) -> dict[str, str]:
    r"""Take the pairs out of the text of a `.properties` file.

    >>> parse("# a comment\nlog.dirs = /a,\\\n    /b\nkey\\ with\\ blanks: \\u00e9")
    {'log.dirs': '/a,/b', 'key with blanks': 'é'}
    """
    pairs = {}
    for line in _logical_lines(text):
        found = _PAIR.fullmatch(line)
        if found:
            pairs[_unescape(found[1])] = _unescape(found[2])
    return pairs


def _logical_lines(text: str) -> list[str]:
    """Join the lines that end in a backslash with the next, without blank lines and comments."""
    lines = []
    logical = ""
    for natural in re.split("\r\n|\r|\n", text):
        line = natural.lstrip(_BLANKS)
        # a line that holds nothing so far may still become a comment
        if not logical and line[:1] in {"#", "!"}:
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        is_continued = backslashes % 2 == 1
        logical += line[:-1] if is_continued else line
        if not is_continued:
            if logical:
                lines.append(logical)
            logical = ""
    return [*lines, logical] if logical else lines


def _unescape(text: str) -> str:
    def letter(found: re.Match[str]) -> str:
        escaped = found[1]
        if escaped[:1] != "u":
            return _ESCAPES.get(escaped, escaped)
        if not _HEX.fullmatch(escaped):
            raise refused("properties", "four hexadecimal digits after \\u", f'"\\{escaped}"')
        return chr(int(escaped[1:], 16))

    return _ESCAPE.sub(letter, text)


def texts(argument: str, properties: Mapping[str, object]) -> dict[str, str]:
    """Give what a mapping holds as a file would have it: `True` is `"true"`."""
    given = {}
    for name, value in properties.items():
        if not isinstance(name, str):
            raise refused(argument, "names that are text", shown(name))
        if isinstance(value, bool):
            given[name] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            given[name] = shown(value, str)
        else:
            raise refused(str(name), "a text, a number or a bool", shown(value))
    return given


def refused(name: str, expected: str, found: str) -> ConfigError:
    """Make the error for an argument or a property that is not allowed."""
    sentence = f"{name}: expected {expected}, found {found}"
    return ConfigError(sentence, code="config", argument=name, expected=expected, found=found)


def shown(value: object, write: Callable[[object], str] = repr) -> str:
    """Write a value; its class where Python does not write it, as a number of very many digits."""
    try:
        return write(value)
    except ValueError:
        return type(value).__name__
