"""The limit on the memory of the commands that read records: the settings of the option `--max-batch-bytes`."""

from typing import Any

__all__ = ["DEFAULT_MAX_BATCH_BYTES", "MAX_BATCH_BYTES_OPTION"]

DEFAULT_MAX_BATCH_BYTES = 128 << 20

MAX_BATCH_BYTES_OPTION: dict[str, Any] = {
    "min": 1,
    "max": 2**62,
    "metavar": "BYTES",
    "help": "The largest batch that is read, as stored and decompressed: it must fit into memory.",
}
