"""The option that limits the memory of the commands that read records."""

from typing import Annotated

from cordwood.cli.declared import Option

__all__ = ["DEFAULT_MAX_BATCH_BYTES", "MaxBatchBytes"]

DEFAULT_MAX_BATCH_BYTES = 128 << 20

MaxBatchBytes = Annotated[
    int,
    Option(
        "--max-batch-bytes",
        min=1,
        max=2**62,
        metavar="BYTES",
        help="The largest batch that is read, as stored and decompressed: it must fit into memory.",
    ),
]
