"""Sizes and counts as text for people."""

__all__ = ["bytes_in_words", "several"]


def bytes_in_words(count: int) -> str:
    """Format a size for a person.

    >>> bytes_in_words(512), bytes_in_words(64_994)
    ('512 B', '63.5 KiB')
    """
    size, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    unit = 0
    while size >= 1024 and unit < len(units) - 1:  # noqa: PLR2004  (KiB)
        size, unit = size / 1024, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.1f} {units[unit]}"


def several(count: int, what: str) -> str:
    """Format a count with a singular or plural noun.

    >>> several(1, "segment"), several(0, "segment"), several(1200, "row")
    ('1 segment', '0 segments', '1,200 rows')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"
