"""The JVM with Kafka's own classes, one for the whole session."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from interop.kafka_classes import KafkaClasses, missing_tools


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaClasses]:
    missing = missing_tools()
    if missing:
        reason = f"needs {' and '.join(missing)}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with (tmp_path_factory.mktemp("kafka") / "said.txt").open("w+", encoding="utf-8") as said:
        classes = KafkaClasses(said)
        yield classes
        classes.close()
