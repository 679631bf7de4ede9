"""Parser of property files, as `java.util.Properties` reads them: strings by name."""

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
# the key, which ends at the first unescaped separator; the separator; the value
_PAIR = re.compile(r"((?:[^\\ \t\f=:]|\\.)*)[ \t\f]*(?:[=:][ \t\f]*)?(.*)", re.DOTALL)


def read(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read a `.properties` file as Java does, in ISO 8859-1. The last value of a repeated name is returned."""
    try:
        text = Path(path).read_text(encoding="latin-1")
    except ValueError:
        # a NUL, or a surrogate that does not encode a byte
        raise refused("properties", "a valid path", shown(path)) from None
    return parse(text)


def parse(text: str) -> dict[str, str]:
    r"""Parse the text of a `.properties` file.

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
    """Join lines that end in a backslash with the next line; skip blank lines and comments."""
    lines = []
    logical = ""
    for natural in re.split("\r\n|\r|\n", text):
        line = natural.lstrip(_BLANKS)
        # a continuation line is never a comment, unless the lines before it were empty
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
    """Convert the values of a mapping to strings as in a file: `True` is `"true"`."""
    given = {}
    for name, value in properties.items():
        if not isinstance(name, str):
            raise refused(argument, "names that are strings", shown(name))
        if isinstance(value, bool):
            given[name] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            given[name] = shown(value, str)
        else:
            raise refused(str(name), "a string, a number or a bool", shown(value))
    return given


def refused(name: str, expected: str, found: str) -> ConfigError:
    """Create the error for an invalid argument or property."""
    sentence = f"{name}: expected {expected}, found {found}"
    return ConfigError(sentence, code="config", argument=name, expected=expected, found=found)


def shown(value: object, write: Callable[[object], str] = repr) -> str:
    """Format a value, or its class if Python refuses to format it (an int with too many digits)."""
    try:
        return write(value)
    except ValueError:
        return type(value).__name__
