"""The measurements of the arms: as a table, and as CSV."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

Run = dict[str, Any]


@dataclass
class Results:
    """The measurements: runs by arm, round and turn; failed rounds are empty."""

    runs: dict[str, list[list[Run]]] = field(default_factory=dict)
    elements: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def add(self, name: str, number: int, elements: int, run: Run) -> None:
        """A run of round `number`."""
        self.elements[name] = elements
        rounds = self.runs.setdefault(name, [])
        rounds += [[] for _ in range(number + 1 - len(rounds))]
        rounds[number].append(run)

    def ns(self, name: str, what: str) -> list[float]:
        """The median of each round, ns per element."""
        return [median(run[what] for run in runs) * 1e9 / self.elements[name] for runs in self.runs[name] if runs]

    def quotients(self, *names: str, of: Callable[..., float]) -> list[float]:
        """The median of each round over its turns: `of` the runs of the same turn."""
        medians = []
        for runs in zip(*(self.runs.get(name, []) for name in names), strict=False):
            turns = [of(*turn) for turn in zip(*runs, strict=False)]
            medians += [median(turns)] if turns else []
        return medians


def spread(numbers: list[float], form: str) -> str:
    """The median, the minimum and the maximum."""
    if not numbers:
        return "not measured"
    return f"{median(numbers):{form}} ({min(numbers):{form}}-{max(numbers):{form}})"


def table(results: Results) -> None:
    """All arms: the median of the rounds, the minimum and the maximum."""
    print(f"\n{'ns an element':<48} {'CPU':>20} {'JVM':>6} {'Python':>6} {'wall':>20} {'M/s':>6} {'idle':>5}")
    for name, rounds in results.runs.items():
        cpu, wall = (spread(results.ns(name, what), ".0f") for what in ("cpu", "wall"))
        jvm, python, rate = (median(results.ns(name, what)) for what in ("jvm", "python", "wall"))
        idle = median(run["idle"] for runs in rounds for run in runs)
        print(f"{name:<48} {cpu:>20} {jvm:>6.0f} {python:>6.0f} {wall:>20} {1e3 / rate:>6.2f} {idle:>5.0%}")


def record(results: Results, path: Path) -> None:
    """Every run, in the order of rounds and turns."""
    columns = {"cpu_ns": "cpu", "jvm_ns": "jvm", "python_ns": "python", "wall_ns": "wall"}
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["benchmark", "round", "turn", "elements", *columns, "idle"])
        for name, rounds in sorted(results.runs.items()):
            elements = results.elements[name]
            for number, runs in enumerate(rounds, 1):
                for turn, run in enumerate(runs, 1):
                    ns = [f"{run[what] * 1e9 / elements:.1f}" for what in columns.values()]
                    writer.writerow([name, number, turn, elements, *ns, f"{run['idle']:.2f}"])
