r"""Regular expressions for topics, with the same matches as in Spark's Kafka source.

Spark selects a topic if `java.util.regex` finds the pattern anywhere in its name (Scala's `findFirstIn`). The planner
runs in a process without a JVM, so Python's `re` is used, for patterns with the same meaning in both languages:

    literals . ^ $ | (…) (?:…) (?=…) (?!…) (?<=…) (?<!…) (?>…) (?i:…), and (?i) at the start
    * + ? {n} {n,} {n,m}, each with ? or + after it
    [a-z] [^…], inside or outside of them \d \w \s \D \W \S; \b \B \A \Z \z and \Q…\E
    a backslash before an ASCII character that is neither letter nor digit

Everything else is refused: `\p{Alpha}`, named groups, back-references, nested classes, and so on. Topic names have only
ASCII letters, digits, dots, dashes and underscores, so differences between the languages in other characters, and in
line ends before `$` and `\Z`, do not matter.
"""

import functools
import re
import warnings

__all__ = ["TopicPatternError", "topic_pattern"]

_ESCAPED = r"\\[ -/:-@\[-`{-~]"
# in a class a dash is literal only at the ends, and && is an intersection
_SINGLE = rf"(?:{_ESCAPED}|&(?!&)|[^\[\]\\&-])"
_TOKEN = re.compile(
    rf"""
      \\Q (?P<quoted> .*? ) (?: \\E | \Z )
    | (?P<end> \\[Zz] )
    | \\[dDwWsSbBA] | {_ESCAPED}
    | \[ \^? (?!\]) -? (?: {_SINGLE} (?: - {_SINGLE} )? | \\[dDwWsS] )* (?<!-) -? \]
    | \( (?: \?(?: : | = | ! | <= | <! | > | i: ) | (?!\?) )
    | (?: [*+?] | \{{ [0-9]{{1,9}} (?: , (?: [0-9]{{1,9}} )? )? \}} ) [?+]?
    | [^\\\[({{*+?]
    """,
    re.VERBOSE | re.DOTALL,
)

# String.trim of Java, which Spark calls
_BLANK = "".join(map(chr, range(ord(" ") + 1)))


class TopicPatternError(ValueError):
    """A pattern that is not a regular expression, or that may differ in meaning between Java and Python."""


@functools.cache
def topic_pattern(text: str) -> re.Pattern[str]:
    r"""Compile a pattern; use `search` on a topic name. *Errors*: `TopicPatternError`.

    >>> bool(topic_pattern("der").search("orders")), bool(topic_pattern(r"^der|\Q.\E").search("orders"))
    (True, False)
    """
    text = text.strip(_BLANK)
    if not text:
        raise TopicPatternError("the pattern is empty")
    translated = "(?i)" if text.startswith("(?i)") else ""
    at = len(translated)
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise TopicPatternError(f"{text[at : at + 3]!r}… at position {at} is not supported")
        if token["quoted"] is not None:
            translated += re.escape(token["quoted"])
        else:
            translated += r"\Z" if token["end"] else token[0]
        at = token.end()
    try:
        with warnings.catch_warnings():
            # the warning for syntax that may change its meaning in a later Python
            warnings.simplefilter("error", FutureWarning)
            return re.compile(translated, re.ASCII)
    except (re.error, FutureWarning, OverflowError, RecursionError) as error:
        raise TopicPatternError(str(error)) from None
