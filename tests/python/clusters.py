"""Data directories with the metadata of a cluster, whose records are encoded here by Kafka's published schemas."""

from __future__ import annotations

import base64
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path

import cordwood as cw

OLD = 1_600_000_000_000
TOPIC, BROKER = 2, 4


def text(value: str) -> bytes:
    return bytes([len(value.encode()) + 1]) + value.encode()


def topic_record(name: str, topic_id: uuid.UUID) -> bytes:
    """`TopicRecord`, version 0, after the version of the frame and the type."""
    return bytes([1, 2, 0]) + text(name) + topic_id.bytes + b"\0"


def config_record(kind: int, resource: str, name: str, value: str | None) -> bytes:
    """`ConfigRecord`, version 0."""
    return bytes([1, 4, 0, kind]) + text(resource) + text(name) + (b"\0" if value is None else text(value)) + b"\0"


def kafkas(topic_id: uuid.UUID) -> str:
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


class Cluster:
    """A data directory with a metadata log, and a partition whose records are old."""

    def __init__(self, path: Path, topic: str = "orders") -> None:
        self.path = path
        self.ids = {topic: uuid.UUID(int=7 << 64 | 5)}
        path.mkdir()
        (path / "meta.properties").write_text("version=1\nnode.id=3\ncluster.id=x\n")
        (path / "__cluster_metadata-0").mkdir()
        self.append(topic_record(name, topic_id) for name, topic_id in self.ids.items())

    def set(self, kind: int, resource: str, **settings: str | None) -> None:
        self.append(config_record(kind, resource, name.replace("_", "."), value) for name, value in settings.items())

    def append(self, records: Iterable[bytes]) -> None:
        """Append to the metadata log, in which a `LogWriter` does not write."""
        written = self.path.parent / "metadata-0"
        with cw.LogWriter(written) as writer:
            for record in records:
                writer.append(record)
        for file in written.glob("0*"):
            shutil.copy(file, self.path / "__cluster_metadata-0")

    def write(self, name: str = "orders", topic_id: uuid.UUID | None = None) -> Path:
        """Write a partition with two sealed segments and an active one."""
        path = self.path / f"{name}-0"
        given = None if topic_id is None else kafkas(topic_id)
        with cw.LogWriter(path, config=cw.LogConfig(), topic_id=given) as writer:
            for number in range(3):
                writer.append(b"x", key=b"k%d" % number, timestamp=OLD + number)
                writer.roll()
        return path
