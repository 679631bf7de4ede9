"""The client of `tests/interop`: Kafka's own classes in one JVM, with requests as JSON lines."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, TextIO

PROJECT = Path(__file__).resolve().parents[2] / "interop"
PATIENCE = 120.0  # seconds for one answer; a broker takes under ten to start
JAVA = ("-Xms64m", "-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.language=en", "-Duser.country=US")


def missing_tools() -> list[str]:
    return [tool for tool in ("mvn", "javac") if shutil.which(tool) is None]


def tool(name: str) -> str:
    path = shutil.which(name)
    assert path is not None, name
    return path


def build() -> str:
    """Build the Maven project if a source is newer than the last build, and return the class path."""
    built = PROJECT / "target" / "classpath.txt"
    sources = [PROJECT / "pom.xml", *PROJECT.glob("src/main/java/**/*.java")]
    newest = max(source.stat().st_mtime for source in sources)
    if not built.exists() or built.stat().st_mtime < newest or not jars_are_there(built):
        built.unlink(missing_ok=True)
        # the one thing here that may need the network: Maven fetches Kafka
        made = subprocess.run(
            [tool("mvn"), "-B", "-q", "-f", str(PROJECT / "pom.xml"), "compile"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            message = f"mvn compile failed in {PROJECT}:\n{made.stdout}{made.stderr}"
            raise RuntimeError(message)
        os.utime(built)
    return os.pathsep.join([str(PROJECT / "target" / "classes"), built.read_text().strip()])


def jars_are_there(classpath: Path) -> bool:
    return all(Path(jar).exists() for jar in classpath.read_text().strip().split(os.pathsep))


class KafkaRefusedError(Exception):
    """Kafka raised an exception; the text is the exception and its causes."""


class KafkaClasses:
    """The JVM. `ask` sends a request and waits for its response."""

    def __init__(self, said: TextIO, options: Iterable[str] = JAVA) -> None:
        """`said` gets its standard error; *options* are those of the JVM."""
        self._said = said
        self._process = subprocess.Popen(
            [tool("java"), *options, "-cp", build(), "cordwood.interop.Main"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )
        self._answers: queue.Queue[str] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def ask(self, do: str, **question: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **question}, default=str) + "\n")
        self._process.stdin.flush()
        line = self._answers.get(timeout=PATIENCE)
        if not line:
            self._said.seek(0)
            message = f"the JVM ended: {self._said.read()[-4000:]}"
            raise RuntimeError(message)
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise KafkaRefusedError(answer["error"])
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


# ---- records, as the JVM writes them -----------------------------------------------------------------------------


class Row(NamedTuple):
    """One record; its text is that of `Lines.java`."""

    offset: int
    timestamp_type: int
    timestamp: int
    epoch: int
    key: bytes | None
    value: bytes | None
    headers: Iterable[tuple[str, bytes | None]] = ()

    def __str__(self) -> str:
        numbers = (self.offset, self.timestamp_type, self.timestamp, self.epoch)
        headers = [text for name, value in self.headers for text in (name.encode().hex(), hexadecimal(value))]
        return " ".join([*map(str, numbers), hexadecimal(self.key), hexadecimal(self.value), *headers])


def digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("".join(f"{text}\n" for text in lines).encode()).hexdigest()


def hexadecimal(content: bytes | None) -> str:
    return "-" if content is None else content.hex()


def base64_text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()
