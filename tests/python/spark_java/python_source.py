"""The source in Python under a name of its own, beside the one in Java."""

from __future__ import annotations

from cordwood.spark import LogDataSource


class PythonSource(LogDataSource):
    """`format("cordwood_python")`."""

    @classmethod
    def name(cls) -> str:
        return "cordwood_python"
