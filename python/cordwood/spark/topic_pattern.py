r"""Regular expressions for topics, which choose what Spark's Kafka source chooses.

That takes a topic where `java.util.regex` finds the pattern anywhere in its name (Scala's `findFirstIn`). The planner
runs in a process without a JVM, so here Python's `re` searches, for patterns that both languages read in the same way:

    literals . ^ $ | (…) (?:…) (?=…) (?!…) (?<=…) (?<!…) (?>…) (?i:…), and (?i) at the start
    * + ? {n} {n,} {n,m}, each with ? or + after it
    [a-z] [^…], in them or beside them \d \w \s \D \W \S; \b \B \A \Z \z and \Q…\E
    a backslash before an ASCII character that is neither letter nor digit

All else is refused: `\p{Alpha}`, named groups, back-references, classes within classes, and the like. Names of topics
have ASCII letters, digits, dots, dashes and underscores only, so what the two languages make of other characters, and
of line ends before `$` and `\Z`, does not matter.
"""

import functools
import re
import warnings

__all__ = ["TopicPatternError", "topic_pattern"]

_ESCAPED = r"\\[ -/:-@\[-`{-~]"
# in a class a dash stands for itself at the ends only, and && is an intersection
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
    """A pattern that is no regular expression, or one that Java and Python do not read in the same way."""


@functools.cache
def topic_pattern(text: str) -> re.Pattern[str]:
    r"""Read a pattern; its `search` finds it in the name of a topic. *Errors*: `TopicPatternError`.

    >>> bool(topic_pattern("der").search("orders")), bool(topic_pattern(r"^der|\Q.\E").search("orders"))
    (True, False)
    """
    text = text.strip(_BLANK)
    if not text:
        raise TopicPatternError("nothing to look for")
    translated = "(?i)" if text.startswith("(?i)") else ""
    at = len(translated)
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise TopicPatternError(f"{text[at : at + 3]!r}… at position {at} is not of the syntax that is taken")
        if token["quoted"] is not None:
            translated += re.escape(token["quoted"])
        else:
            translated += r"\Z" if token["end"] else token[0]
        at = token.end()
    try:
        with warnings.catch_warnings():
            # of what may mean something else in a later Python
            warnings.simplefilter("error", FutureWarning)
            return re.compile(translated, re.ASCII)
    except (re.error, FutureWarning, OverflowError, RecursionError) as error:
        raise TopicPatternError(str(error)) from None
