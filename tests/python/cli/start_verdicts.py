"""What `verify --as-kafka` says of data directories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scripts import Command


def verdicts(command: Command, *arguments: str | Path) -> tuple[int, dict[str, str], list[dict[str, Any]]]:
    """The exit code, the fate of each directory, and the summaries."""
    code, shown, _ = command("verify", *arguments, "--as-kafka", "--json")
    lines = [json.loads(line) for line in shown.splitlines()]
    fates = {Path(line["path"]).name: line["fate"] for line in lines if "fate" in line}
    return code, fates, [line for line in lines if "summary" in line]
