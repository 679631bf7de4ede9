"""Verify a backup of a data directory, and write a report of each partition that has errors.

    python examples/verify_backup.py BACKUP REPORTS

Exit code 1: an error was found. Needs matplotlib.
"""

import sys
from pathlib import Path

import cordwood as cw
from cordwood.report import Report


def main(backup: str, reports: str) -> int:
    """Print the errors, write the reports, and return the exit code."""
    found = cw.verify(backup, threads=2)
    errors = [finding for finding in found.findings if finding.severity == "error"]
    for error in errors:
        place = "" if error.position is None else f" at position {error.position}, offset {error.start_offset}"
        print(f"{error.code}: {error.file}{place}")
    Path(reports).mkdir(parents=True, exist_ok=True)
    damaged = {Path(error.file).parent for error in errors}
    for partition in sorted(damaged):
        if cw.classify(partition).kind == "partition":
            page = Path(reports) / f"{partition.name}.html"
            page.write_text(Report(partition).to_html(), encoding="utf-8")
            print(f"report: {page}")
    print(f"{found.partitions} partitions, {found.bytes_checked} bytes, {len(errors)} errors")
    return 0 if found.is_intact else 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case [backup, reports]:
            sys.exit(main(backup, reports))
        case _:
            sys.exit(__doc__)
