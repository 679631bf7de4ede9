"""Write the records of a topic between two times to a Parquet file.

    python examples/time_range_to_parquet.py DATA_DIRECTORY TOPIC SINCE UNTIL OUTPUT

SINCE and UNTIL: 2024-05-01T10:00Z, 2024-05-01, -2h, now. Needs pyarrow.
"""

import sys

import cordwood as cw


def main(directory: str, topic: str, since: str, until: str, output: str) -> None:
    """Write the file, and say what is in it."""
    scan = cw.LogDir(directory).scan([topic], start_time=since, end_time=until)
    scan.to_parquet(output)  # a batch at a time: memory does not grow with the range
    print(f"{output}: {scan.stats.records} records")


if __name__ == "__main__":
    match sys.argv[1:]:
        case [directory, topic, since, until, output]:
            main(directory, topic, since, until, output)
        case _:
            sys.exit(__doc__)
