"""The jobs' own error."""

from cordwood import CordwoodError

__all__ = ["ExportError"]


class ExportError(CordwoodError):
    """An export that cannot go on, or whose files do not hold what the log holds; the message says what to do."""
