"""A producer that sends batches as they are: version 7 of the produce request, over a socket."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Self

PRODUCE, VERSION = 0, 7
PATIENCE = 60.0


def text(name: str) -> bytes:
    return struct.pack(">h", len(name)) + name.encode()


class RawProducer:
    """A connection to a broker. Not for several threads."""

    def __init__(self, address: str, topic: str) -> None:
        host, port = address.rsplit(":", 1)
        self._topic = topic
        self._socket = socket.create_connection((host, int(port)), timeout=PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    def send(self, records: bytes) -> tuple[int, int]:
        """Append to partition 0. Return Kafka's error code and the base offset."""
        partition = struct.pack(">ii", 0, len(records)) + records
        topics = struct.pack(">i", 1) + text(self._topic) + struct.pack(">i", 1) + partition
        body = struct.pack(">hhi", PRODUCE, VERSION, 1) + text("rig") + struct.pack(">hhi", -1, -1, 30_000) + topics
        self._socket.sendall(struct.pack(">i", len(body)) + body)
        answer = self._read(*struct.unpack(">i", self._read(4)))
        at = 4 + 4 + 2 + len(self._topic) + 4
        _, error, base_offset = struct.unpack_from(">ihq", answer, at)
        return error, base_offset

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                message = "the broker closed the connection"
                raise ConnectionError(message)
            parts += part
        return bytes(parts)
