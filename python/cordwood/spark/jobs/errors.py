"""Errors of the jobs."""

from cordwood import ConfigError, CordwoodError

__all__ = ["ExportError", "ImportRowsError", "OutputError"]


class ExportError(CordwoodError):
    """An export cannot continue, or its files differ from the log; the message says what to do."""


class ImportRowsError(CordwoodError):
    """An import cannot begin or continue; the message says what to do."""


class OutputError(ConfigError, ExportError):
    """No job may write to this output; choose another one."""
