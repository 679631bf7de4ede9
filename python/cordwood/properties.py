"""Properties: the files that Java's `java.util.Properties` reads, and what the names in them mean for a log."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from cordwood.settings import SETTINGS, Allowed, Flag, Integer, Setting, Synonym, refused, shown

__all__ = ["is_brokers", "of_broker", "of_topic", "read", "texts"]

SEGMENT_BYTES = "segment.bytes"
# a topic's name for a segment size below 1 MiB; it wins over the other
INTERNAL_SEGMENT_BYTES = "internal.segment.bytes"
LEAST_SEGMENT_BYTES = 1 << 20

_BROKERS = ("broker.id", "node.id", "process.roles")
# Kafka's too, but nothing that a log's files show
_IGNORED = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
)
# has to be off: with it, what lies here is not the whole log
_REMOTE_STORAGE = "remote.storage.enable"

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
            given[name] = Flag().text(value)
        elif isinstance(value, str | int | float):
            given[name] = shown(value, str)
        else:
            raise refused(str(name), "a text, a number or a bool", shown(value))
    return given


def is_brokers(names: Mapping[str, str]) -> bool:
    """Whether they are of a broker's file: a name begins with `log.`, or is one that every broker has."""
    return any(name.startswith("log.") or name in _BROKERS for name in names)


def of_broker(given: Mapping[str, str]) -> dict[str, object]:
    """Take the fields out of a broker's properties."""
    values: dict[str, object] = {}
    for setting in SETTINGS:
        # a name that loses is read all the same: a broker that cannot read it does not start
        for synonym in setting.synonyms:
            if synonym.name in given:
                text = given[synonym.name]
                value = _read(synonym.name, text, synonym.allowed or _limit(setting))
                if setting.field not in values:
                    values[setting.field] = _in_units(setting, synonym, text, value)
    return values


def of_topic(given: Mapping[str, str]) -> dict[str, object]:
    """Take the fields out of a topic's overrides."""
    known = {setting.name: setting for setting in SETTINGS}
    values = {}
    # in order, as the core goes through them: the same of several errors is the one that is raised
    for name, text in sorted(given.items()):
        if name == INTERNAL_SEGMENT_BYTES or name in _IGNORED:
            continue
        if name == _REMOTE_STORAGE:
            _require_off(name, text)
            continue
        if name not in known:
            raise refused(name, _known_setting(name), "an unknown name")
        values[known[name].field] = _read(name, text, _limit(known[name]))
    if INTERNAL_SEGMENT_BYTES in given:
        setting = known[SEGMENT_BYTES]
        values[setting.field] = _read(INTERNAL_SEGMENT_BYTES, given[INTERNAL_SEGMENT_BYTES], setting.allowed)
    return values


def _require_off(name: str, text: str) -> None:
    try:
        is_on = Flag().parse(text)
    except ValueError:
        is_on = True
    if is_on:
        raise refused(name, "false: there is no tiered storage here", f'"{text}"')


def _in_units(setting: Setting, synonym: Synonym, text: str, value: object) -> object:
    """Convert to the setting's own unit. A broker takes any negative retention time for -1, and none of 0."""
    if not isinstance(setting.allowed, Integer) or not isinstance(value, int):
        return value
    number = value * synonym.factor
    if setting.name == "retention.ms":
        if number == 0:
            raise refused(synonym.name, "1 or more, or -1 for no limit", f'"{text}"')
        return max(number, -1)
    try:
        return setting.allowed.check(number)
    except ValueError:
        raise refused(synonym.name, str(setting.allowed), f'"{text}"') from None


def _limit(setting: Setting) -> Allowed:
    """Give what properties may say: less than the field may for the size of a segment."""
    if setting.name == SEGMENT_BYTES and isinstance(setting.allowed, Integer):
        return Integer(LEAST_SEGMENT_BYTES, setting.allowed.most)
    return setting.allowed


def _read(name: str, text: str, allowed: Allowed) -> object:
    try:
        return allowed.parse(text)
    except ValueError:
        expected = str(allowed)
        if name.endswith(SEGMENT_BYTES) and name != INTERNAL_SEGMENT_BYTES:
            expected += f"; for a smaller one, {INTERNAL_SEGMENT_BYTES} of a topic"
        raise refused(name, expected, f'"{text}"') from None


def _known_setting(name: str) -> str:
    """Say what is expected instead of a name that no topic has."""
    for setting in SETTINGS:
        if any(synonym.name == name for synonym in setting.synonyms):
            return f"a topic's setting: {name} is a broker's, and a topic's is {setting.name}"
    nearest = _nearest(name, [*(setting.name for setting in SETTINGS), INTERNAL_SEGMENT_BYTES])
    return "a topic's setting" if nearest is None else f"a topic's setting; the nearest is {nearest}"


def _nearest(name: str, known: Iterable[str]) -> str | None:
    """Give the known name with the fewest edits, by the rule of the core (`src/config/suggestions.rs`)."""
    name, most = name.lower(), max(len(name) // 3, 1)
    edits = {other: _edits(name, other.lower()) for other in known}
    nearest = min(edits, key=edits.__getitem__)
    return nearest if edits[nearest] <= most else None


def _edits(one: str, other: str) -> int:
    """Count the letters to put in, leave out or change to make one of the other (Levenshtein)."""
    row = list(range(len(other) + 1))
    for above, letter in enumerate(one):
        following = [above + 1]
        for at, wanted in enumerate(other):
            following.append(min(row[at] + (letter != wanted), row[at + 1] + 1, following[at] + 1))
        row = following
    return row[-1]
