"""`LogWriter.producer`: appends that are called again, after a crash and from two handles."""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scripts import write_script

import cordwood as cw


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "orders-0"


def values(path: Path) -> list[bytes | None]:
    return [record.value for record in cw.Log(path).records()]


def test_an_append_that_is_called_again_is_not_written_twice(path: Path) -> None:
    with cw.LogWriter(path) as writer:
        producer = writer.producer("import")
        assert (producer.name, producer.producer_epoch) == ("import", 0)
        assert (producer.next_sequence, producer.last_offset) == (0, None)
        first = producer.append("a", key="k", timestamp=1_700_000_000_000, sequence=0)
        assert (first.first_offset, first.is_duplicate, first.durable) == (0, False, True)
        again = producer.append("a", key="k", timestamp=1_700_000_000_000, sequence=0)
        assert (again.first_offset, again.max_timestamp, again.is_duplicate) == (0, 1_700_000_000_000, True)
        producer.append_many(["b", cw.Record("c")])
        with pytest.raises(cw.OutOfOrderSequenceError) as raised:
            producer.append("d", sequence=7)
        error = raised.value
        assert (error.argument, error.expected, error.found) == ("sequence", "sequence 3", "7")
        assert (error.position, error.producer_id, error.producer_epoch) == (None, producer.producer_id, 0)
        assert (producer.next_sequence, producer.last_offset) == (3, 2)
        assert repr(producer) == f'<Producer "import" ({producer.producer_id}) of {path}>'
        unnamed = writer.producer()
        assert (unnamed.name, unnamed.producer_id == producer.producer_id) == (None, False)
        assert not writer.append("e").is_duplicate
    assert values(path) == [b"a", b"b", b"c", b"e"]
    with pytest.raises(cw.ClosedError):
        producer.append("f")
    with pytest.raises(cw.ClosedError):
        _ = producer.next_sequence


def test_a_name_that_is_used_again_fences_the_earlier_object(path: Path) -> None:
    with cw.LogWriter(path) as writer:
        first = writer.producer("import")
        first.append("a")
        second = writer.producer("import")
        with pytest.raises(cw.InvalidProducerEpochError) as raised:
            first.append("b")
        assert (raised.value.argument, raised.value.found) == ("producer", "0")
        assert raised.value.expected == "epoch 1 or above"
        assert second.append("a", sequence=0).is_duplicate
        assert second.append("b", sequence=1).first_offset == 1
    assert values(path) == [b"a", b"b"]


def test_a_producer_is_not_pickled_and_not_used_in_a_forked_child(path: Path) -> None:
    with cw.LogWriter(path) as writer:
        producer = writer.producer("import")
        with writer.transaction("t") as transaction:
            for belongs in (producer, transaction):
                with pytest.raises(TypeError, match="belongs to its LogWriter and cannot be pickled"):
                    pickle.dumps(belongs)
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    for call in (producer.append, transaction.append):
                        with pytest.raises(cw.ForkedHandleError):
                            call("x")
                    with pytest.raises(cw.ForkedHandleError):
                        transaction.commit()
                    del producer, transaction
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
        producer.append("a")
    assert values(path) == [b"a"]


# Appends the numbers of a source, each with its number as sequence, until it is killed.
IMPORTER = """
import sys
import cordwood as cw

path, flush = sys.argv[1:]
writer = cw.LogWriter(path, flush=flush, config=cw.LogConfig(segment_bytes=3000, retention_ms=-1))
producer = writer.producer("import")
start = producer.next_sequence
# the last call may have been completed: it is called again
number = max(0, start - 1)
print(number, flush=True)
while True:
    appended = producer.append(b"%d" % number, sequence=number)
    assert appended.first_offset == number, (appended, number)
    assert appended.is_duplicate == (number < start), (appended, number, start)
    number += 1
"""


@pytest.mark.parametrize("flush", ["none", "always"])
def test_a_killed_import_continues_and_writes_nothing_twice(path: Path, flush: str) -> None:
    script = write_script(path.parent, IMPORTER)
    rng = random.Random(7)
    for _ in range(6):
        process = subprocess.Popen([sys.executable, script, path, flush], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline(), "it failed"
        time.sleep(rng.uniform(0.0, 0.15))
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    found = values(path)
    assert found == [b"%d" % number for number in range(len(found))]
    assert len(found) > 20
