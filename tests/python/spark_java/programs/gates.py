"""Stops a query in its middle, so that something happens at a known place."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame


class Gate:
    """A place in a query where each task waits after its first rows, until the gate is opened."""

    def __init__(self, folder: Path, name: str) -> None:
        self.arrived = folder / f"{name}-arrived"
        self.opened = folder / f"{name}-opened"

    def through(self, frame: DataFrame) -> DataFrame:
        arrived, opened = str(self.arrived), str(self.opened)

        def wait(batches: Iterator[Any]) -> Iterator[Any]:
            from pathlib import Path
            from time import sleep

            for batch in batches:
                Path(arrived).touch()
                while not Path(opened).exists():
                    sleep(0.02)
                yield batch

        return frame.mapInArrow(wait, frame.schema)

    def during(self, query: Callable[[], Any], action: Callable[[], Any]) -> Any:
        """The result of a query, while which the action runs."""
        outcome: list[Any] = []

        def run() -> None:
            try:
                outcome.append(query())
            except Exception as error:  # noqa: BLE001  (raised again below)
                outcome.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            until(lambda: self.arrived.exists() or not thread.is_alive())
            action()
        finally:
            self.opened.touch()
            thread.join()
        if isinstance(outcome[0], Exception):
            raise outcome[0]
        return outcome[0]


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
