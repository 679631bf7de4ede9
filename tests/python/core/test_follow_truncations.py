"""What `Log.follow` says of a truncation that it sees half done."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import cordwood as cw


def test_a_truncation_of_several_segments_is_reported_with_its_final_end(tmp_path: Path) -> None:
    """A writer removes the newest segments one by one."""
    for number in range(20):
        path = tmp_path / f"orders-{number}"
        with cw.LogWriter(path, flush="none") as writer:
            for _ in range(10):
                writer.append(b"x")
            for _ in range(20):
                writer.roll()
                writer.append(b"x")
            followed = cw.Log(path).follow(start_offset=0)
            assert [next(followed).offset for _ in range(30)] == list(range(30))
            truncating = threading.Thread(target=writer.truncate_to, args=(5,))
            truncating.start()
            with pytest.raises(cw.LogChangedError) as raised:
                next(followed)
            truncating.join()
            assert raised.value.log_end_offset == 5, number


def test_a_truncation_that_a_crash_interrupted_is_reported_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path) as writer:
        for _ in range(3):
            writer.append(b"x")
            writer.roll()
        followed = cw.Log(path).follow(start_offset=0)
        assert [next(followed).offset for _ in range(3)] == [0, 1, 2]
    count = path / ".cordwood.truncations"
    count.write_bytes(count.read_bytes() + b"\0")
    for file in path.glob(f"{2:020}.*"):
        file.unlink()
    for file in path.glob(f"{3:020}.*"):
        file.unlink()
    with pytest.raises(cw.LogChangedError) as raised:
        next(followed)
    assert raised.value.log_end_offset == 2
