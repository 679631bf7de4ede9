"""Names that were meant: what a user wrote is compared with what there is."""

import difflib
from collections.abc import Iterable

__all__ = ["nearest"]


def nearest(name: str, known: Iterable[str], *, likeness: float = 0.65) -> str | None:
    """Give the known name that is most like *name*, in whatever case; `None` where none is.

    *likeness*: from 0 to 1, below which names are strangers: a far-fetched guess is worse than none.

    >>> nearest("STARTOFFSETS", ["startingOffsets", "endingOffsets"]), nearest("colour", ["key", "value"])
    ('startingOffsets', None)
    """
    names = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), names, n=1, cutoff=likeness)
    return names[found[0]] if found else None
