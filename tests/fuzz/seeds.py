"""Write the seeds of the corpus from the golden partitions: `python tests/fuzz/seeds.py`."""

import base64
import gzip
import hashlib
import json
import struct
from pathlib import Path

FUZZ = Path(__file__).parent
GOLDEN = FUZZ.parent / "golden"
VECTORS = FUZZ.parent / "vectors" / "internal_topics.jsonl.gz"
MAX_LOG = 2048

# the order of the decoders in src/lib.rs
DECODERS = ["offsets", "transaction-log", "cluster-metadata", "share-group-state", "remote-log-metadata"]
EVERY = 20
"""One of so many vectors is a seed."""

# the order of NAMES in src/directory.rs
NAMES = [".log", ".index", ".timeindex", ".txnindex", ".snapshot"]
OTHERS = {"leader-epoch-checkpoint": 15, "partition.metadata": 16}


def write(target: str, data: bytes) -> None:
    """Write a seed, named by its contents."""
    folder = FUZZ / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)


def whole_batches(log: bytes) -> bytes:
    """Return the first batches of a segment."""
    end = 0
    while end + 12 <= len(log):
        size = 12 + struct.unpack_from(">i", log, end + 8)[0]
        if size <= 12 or end + size > MAX_LOG:
            break
        end += size
    return log[:end]


def entry(name: int, contents: bytes) -> bytes:
    """Return a file of a directory, as src/directory.rs reads it."""
    return struct.pack(">BH", name, len(contents)) + contents


def of_partition(partition: Path) -> None:
    """Write the seeds of a partition: its first segment, and its small files."""
    logs = sorted(partition.glob("*.log"))
    if not logs:
        return
    cut = whole_batches(logs[0].read_bytes())
    if cut:
        write("batches", cut)
    files = entry(0, cut)
    for number, suffix in enumerate(NAMES[1:], 1):
        file = logs[0].with_suffix(suffix)
        if file.exists():
            files += entry(number, file.read_bytes()[:256])
    for name, number in OTHERS.items():
        if (partition / name).exists():
            files += entry(number, (partition / name).read_bytes()[:256])
    write("directories", files)
    for file in [*partition.glob("*.snapshot"), *(partition / name for name in OTHERS)]:
        if file.exists() and file.stat().st_size <= MAX_LOG:
            write("state_files", file.read_bytes())


def of_indexes() -> None:
    """Write the seeds of indexes: their own, and those of another segment."""
    small = GOLDEN / "01-small" / "tickets-0"
    for base in (96, 189):
        offsets = (small / f"{base:020}.index").read_bytes()
        times = (small / f"{base:020}.timeindex").read_bytes()
        write("indexes", bytes([len(offsets) // 8]) + offsets + times)


def of_internal_topics() -> None:
    """Write the seeds of records of internal topics."""
    with gzip.open(VECTORS, "rt") as lines:
        for number, line in enumerate(lines):
            vector = json.loads(line)
            if number % EVERY == 0 and vector["parser"] in DECODERS:
                key = base64.b64decode(vector["key_bytes"] or "")
                value = base64.b64decode(vector["value_bytes"] or "")
                write("internal_topics", entry(DECODERS.index(vector["parser"]), key) + value)


if __name__ == "__main__":
    for directory in sorted(path for path in GOLDEN.glob("*/*-*") if path.is_dir()):
        of_partition(directory)
    of_indexes()
    of_internal_topics()
