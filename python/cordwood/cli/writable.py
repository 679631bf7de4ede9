"""The check of a dry run: whether the log would be opened for writing."""

from pathlib import Path

from cordwood import LogConfig, LogWriter

__all__ = ["ensure_writable"]


def ensure_writable(path: Path, config: LogConfig | None = None) -> None:
    """Raise the error with which `LogWriter` would refuse the log."""
    LogWriter.plan_recovery(path, config=config)
