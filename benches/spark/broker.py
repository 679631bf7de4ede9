"""A Kafka broker on loopback that serves a partition directory, and Spark's Kafka source. They need a JDK and Maven."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# all compilers, unlike in the tests
JAVA = ("-Xms1g", "-Xmx1g")


@contextmanager
def serving(log: Path, data: Path) -> Iterator[str]:
    """Serve the files of a log named `topic-0` in a new data directory. Yields the broker's address."""
    sys.path.append(str(ROOT / "tests" / "python"))
    from interop.kafka_classes import KafkaClasses  # noqa: PLC0415 - not on the path before

    shutil.rmtree(data, ignore_errors=True)
    with (data.parent / "broker.stderr").open("w") as said:
        classes = KafkaClasses(said, JAVA)
        try:
            classes.ask("start", dir=data)
            classes.ask("create_topic", topic=log.name.removesuffix("-0"), settings={"retention.ms": "-1"})
            classes.ask("stop")
            # as a restore does: the topic id is the broker's
            for file in log.iterdir():
                shutil.copyfile(file, data / log.name / file.name)
            yield classes.ask("start", dir=data)["address"]
            classes.ask("stop")
        finally:
            classes.close()


def source_jars() -> list[str]:
    """The jars of Spark's Kafka source, which Maven fetches."""
    project = HERE / "kafka-source"
    maven = shutil.which("mvn") or "mvn"
    subprocess.run([maven, "-B", "-q", "-f", str(project / "pom.xml"), "compile"], check=True, stdin=subprocess.DEVNULL)
    return (project / "target" / "classpath.txt").read_text().strip().split(os.pathsep)
