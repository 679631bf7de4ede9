"""Shared code of the demo's steps: paths, printing of a step, and checks."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"

Say = Callable[[str], None]


@contextmanager
def step(title: str) -> Iterator[Say]:
    lines: list[str] = []
    start = time.perf_counter()
    yield lines.append
    took = (time.perf_counter() - start) * 1000
    print(f"\n{title}  ({took:.1f} ms)")
    for line in lines:
        print(f"    {line}")


def expect(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        print(f"\n{what}: expected {wanted!r}, found {found!r}")
        sys.exit(1)
