"""Damaged ranges as text."""

from cordwood import DamagedRange
from cordwood._core import _offsets_in_words

__all__ = ["damage_in_words"]


def damage_in_words(damage: DamagedRange) -> str:
    """Name a range that was left out."""
    return (
        f"left out {damage.file}, bytes {damage.start_position} to {damage.end_position}, "
        f"{_offsets_in_words(damage.start_offset, damage.end_offset)}: {damage.reason}"
    )
