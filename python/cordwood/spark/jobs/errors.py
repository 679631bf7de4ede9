"""The jobs' own errors."""

from cordwood import ConfigError, CordwoodError

__all__ = ["ExportError", "OutputError"]


class ExportError(CordwoodError):
    """An export that cannot go on, or whose files do not hold what the log holds; the message says what to do."""


class OutputError(ConfigError, ExportError):
    """An output that no job may write to: another one is to be chosen."""
