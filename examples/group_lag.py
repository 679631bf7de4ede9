"""Write the lag of consumer groups as CSV, from the data directories of a broker, which may run.

    python examples/group_lag.py OUTPUT DATA_DIRECTORY...

Needs pyarrow.
"""

import sys

import pyarrow as pa
from pyarrow import compute, csv

import cordwood as cw

COLUMNS = ["group", "topic", "partition", "offset", "log_start_offset", "log_end_offset", "lag"]


def main(output: str, *directories: str) -> None:
    """Write the file, with the largest lag first, and print the sum of each group."""
    offsets: pa.Table = cw.consumer_offsets(directories).to_arrow().select(COLUMNS)
    # null, for a partition that is not in these directories, is last
    offsets = offsets.sort_by([("lag", "descending")])
    csv.write_csv(offsets, output)
    for row in offsets.group_by("group").aggregate([("lag", "sum")]).sort_by("group").to_pylist():
        print(f"{row['group']}: {row['lag_sum']}")
    missing = compute.sum(compute.is_null(offsets["lag"])).as_py()
    if missing:
        print(f"{missing} partitions are in none of these directories", file=sys.stderr)


if __name__ == "__main__":
    match sys.argv[1:]:
        case [output, *directories] if directories:
            main(output, *directories)
        case _:
            sys.exit(__doc__)
