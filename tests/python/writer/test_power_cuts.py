"""The log after power cuts of ext4 and XFS: what was acknowledged is there, in order, and nothing else."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from scripts import write_script

from writer.loop_devices import LOG_FLUSH, NO_LOG_FLUSH, make_image, mounted, needs, shut_down
from writer.power_cuts import WRITER

CUTS = int(os.environ.get("CORDWOOD_POWER_CUTS", "0"))
# a log is replaced after so many
CUTS_OF_A_LOG = 25

pytestmark = pytest.mark.skipif(CUTS == 0, reason="shuts file systems down; `make power-cuts` runs it")


@dataclass(frozen=True)
class Sent:
    number: int
    # the offset after its batch, which is truncated as a whole
    batch_end: int


@dataclass(frozen=True)
class Model:
    """The log from its client's calls."""

    start: int = 0
    end: int = 0
    durable: int = 0
    records: dict[int, Sent] = field(default_factory=dict)

    def after(self, call: str, given: dict[str, Any]) -> Model:
        """The model when the call has returned."""
        if call == "append":
            numbers = given["numbers"]
            end = self.end + len(numbers)
            new = {self.end + place: Sent(number, end) for place, number in enumerate(numbers)}
            return replace(self, end=end, records=self.records | new)
        if call == "truncate_to" and given["offset"] < self.end:
            offset = given["offset"]
            kept = {at: sent for at, sent in self.records.items() if sent.batch_end <= offset}
            return replace(self, end=offset, durable=min(self.durable, offset), records=kept)
        if call == "restart":
            return Model(given["offset"], given["offset"], given["offset"])
        if call == "delete_before":
            return self.starting_at(max(self.start, given["offset"]))
        return self

    def starting_at(self, start: int) -> Model:
        return replace(self, start=start, records={at: sent for at, sent in self.records.items() if at >= start})


@dataclass
class Judge:
    """Compares what is found after a power cut with the calls before it."""

    model: Model = field(default_factory=Model)
    # the call that had not returned
    call: tuple[str, dict[str, Any]] | None = None
    # whether every call that returned counts as acknowledged, which is wrong
    trusts_all: bool = False

    def hear(self, line: list[Any]) -> None:
        what, *rest = line
        if what == "call":
            self.call = (rest[0], rest[1])
        elif what == "returned":
            assert self.call is not None
            state = rest[0]
            after = self.model.after(*self.call)
            if self.call[0] == "apply_retention":
                after = after.starting_at(state["start"])
            elif self.call[0] == "close" and state["end"] == max(after.records, default=after.start - 1) + 1:
                # a truncation inside a batch removed it; as in Kafka, its other offsets end with the writer
                after = replace(after, end=state["end"])
            assert (after.start, after.end) == (state["start"], state["end"]), (self.call, after, state)
            self.model = replace(after, durable=state["end" if self.trusts_all else "durable"])
            self.call = None
        elif what == "read":
            # of a log that was not recovered, a reader has what is intact
            self.check_appended(dict(rest[0]))
        elif what == "opened":
            self.check(rest[0])
            records = {at: self.sent(at, number) for at, number in rest[0]["records"]}
            assert rest[0]["durable"] == rest[0]["end"]
            self.model = Model(rest[0]["start"], rest[0]["end"], rest[0]["durable"], records)
            self.call = None

    def sent(self, offset: int, number: int) -> Sent:
        known = self.possible().get(offset)
        return known if known is not None and known.number == number else Sent(number, offset + 1)

    def possible(self) -> dict[int, Sent]:
        """The records that may be found."""
        return self.model.after(*self.call).records | self.model.records if self.call else self.model.records

    def check_appended(self, records: dict[int, int]) -> None:
        possible = {at: sent.number for at, sent in self.possible().items()}
        for at, number in records.items():
            assert possible.get(at) == number, f"offset {at} was not appended: {self}"

    def check(self, found: dict[str, Any]) -> None:
        before = self.model
        call, given = self.call or ("", {})
        after = before.after(call, given)
        records = dict(found["records"])
        context = f"{self.call} {before} {found}"
        if call == "restart" and not records and found["start"] == after.start:
            return
        last_start = before.end if call == "apply_retention" else after.start
        assert before.start <= found["start"] <= (before.start if call == "restart" else last_start), context
        # acknowledged, and not removed by the call
        durable = before.start if call == "restart" else before.durable
        kept = after.records if call == "truncate_to" else before.records
        for at in kept:
            assert not found["start"] <= at < durable or at in records, f"offset {at} is lost: {context}"
        self.check_appended(records)
        # a prefix of what was appended, of whole batches
        possible = self.possible()
        ends = [at for at in possible if at >= found["start"]]
        assert list(records) == sorted(ends)[: len(records)], context
        if records:
            last = max(records)
            assert possible[last].batch_end == last + 1, f"a part of a batch: {context}"


def run_until_a_cut(generator: random.Random, folder: Path, errors: Path, command: list[object]) -> list[list[Any]]:
    """Run a writer until its file system ends at a random moment, and return what it printed."""
    with (
        errors.open("wb") as file,
        subprocess.Popen([sys.executable, *map(str, command)], stdout=subprocess.PIPE, stderr=file) as process,
    ):
        assert process.stdout is not None
        wait_for = "opening" if generator.random() < 0.3 else "opened"
        lines: list[list[Any]] = []
        while not lines or lines[-1][0] != wait_for:
            text = process.stdout.readline()
            assert text, errors.read_text()
            lines.append(json.loads(text))
        time.sleep(generator.random() ** 2 * 0.3)
        shut_down(folder, generator.choice([LOG_FLUSH, NO_LOG_FLUSH, NO_LOG_FLUSH]))
        process.kill()
        rest = process.stdout.read()
    assert "AssertionError" not in errors.read_text(), errors.read_text()
    return lines + [json.loads(text) for text in rest.splitlines(keepends=True) if text.endswith(b"\n")]


def run(kind: str, tmp_path: Path, cuts: int, flushes: tuple[str, ...], *, trusts_all: bool = False) -> dict[str, int]:
    """Cut the power so many times, and check the log after each of them."""
    needs(kind)
    script, image = write_script(tmp_path, WRITER), tmp_path / f"{kind}.img"
    make_image(kind, image)
    figures = {"cuts": 0, "calls": 0, "during_opening": 0}
    generator = random.Random(kind)
    number = 0
    for cut in range(cuts):
        if cut % CUTS_OF_A_LOG == 0:
            name, judge = f"orders-{cut}", Judge(trusts_all=trusts_all)
            flush = generator.choice(flushes)
        with mounted(kind, image, "defaults") as folder:
            command = [script, folder / name, flush, generator.randrange(1 << 30), number]
            lines = run_until_a_cut(generator, folder, tmp_path / "errors", command)
        for line in lines:
            judge.hear(line)
            number = max([number, *line[2].get("numbers", [])]) if line[0] == "call" else number
        figures["cuts"] += 1
        figures["calls"] += sum(line[0] == "returned" for line in lines)
        figures["during_opening"] += all(line[0] != "opened" for line in lines)
    return figures


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_acknowledged_records_survive_a_power_cut(kind: str, tmp_path: Path) -> None:
    figures = run(kind, tmp_path, CUTS, ("always", "always", "group", "interval", "none"))
    named = {f"{kind}_{name}": figure for name, figure in figures.items()}
    print(json.dumps({"rig": "power cuts", "lost": 0, "invented": 0, **named}))


def test_records_that_were_not_flushed_do_not_survive_every_power_cut(tmp_path: Path) -> None:
    """Otherwise the test above would prove nothing."""
    with pytest.raises(AssertionError, match="is lost"):
        run("ext4", tmp_path, 50, ("none",), trusts_all=True)
