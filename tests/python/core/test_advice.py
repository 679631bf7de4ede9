"""What `verify --explain` says to do, done: no record that could be read is lost, and the finding is gone."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from scripts import Command

import cordwood as cw
from core.advice_case import Case
from core.advice_damages import CASES
from core.damage_steps import Place

RULES = Path(__file__).parents[3] / "src" / "inspect" / "verify" / "rule.rs"


def codes() -> set[str]:
    """The codes of all rules, from their table."""
    return set(
        re.findall(r'^    [A-Z]\w+ = "(\w+)", (?:Error|Warning|Info),', RULES.read_text(encoding="utf-8"), re.MULTILINE)
    )


def test_every_rule_has_a_case() -> None:
    # a change during the verification, after which the next one begins again
    assert {case.code for case in CASES} == codes() - {"changed"}
    assert len(codes()) > 60


class Readable:
    """What a reader gets of all partitions: records, log start offsets, and the partitions that it cannot read."""

    def __init__(self, data: Path) -> None:
        self.records: dict[tuple[str, int], tuple[bytes | None, bytes | None]] = {}
        self.starts: dict[str, int] = {}
        self.unreadable: set[str] = set()
        for name in cw.LogDir(data):
            try:
                log = cw.Log(data / name)
                self.starts[name] = log.log_start_offset
                for row in log.records(on_damage="skip"):
                    self.records[name, row.offset] = (row.key, row.value)
            except cw.CordwoodError:
                self.unreadable.add(name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_advice_loses_no_record_and_mends_it(case: Case, command: Command, tmp_path: Path) -> None:
    place = Place(tmp_path / "data", tmp_path / "replica", case.partition)
    case.make(place)
    shutil.copytree(place.data, place.replica, symlinks=True)
    case.damage(place)
    before = Readable(place.data)
    findings = [finding for finding in found(case, place) if finding.code == case.code]
    assert findings, [str(finding) for finding in found(case, place)]
    advice = findings[0].advice
    if case.do is None and not case.stays:
        assert advice.startswith("cordwood "), advice
        code, shown, error = command(*shlex.split(advice)[1:])
        assert code == 0, (advice, shown, error)
    elif case.do is not None:
        assert case.says in advice, advice
        case.do(place)
    after = Readable(place.data)
    healthy = Readable(place.replica)
    # those that were deleted can be read again while a checkpoint is damaged
    kept = {key: row for key, row in before.records.items() if key in healthy.records or not healthy.records}
    assert {key: after.records.get(key) for key in kept} == kept, advice
    assert after.unreadable <= before.unreadable, advice
    if healthy.records:
        # nothing that was deleted comes back
        added = {key for key in after.records if key not in healthy.records and key[0] in healthy.starts}
        assert not added, advice
        starts = {name: start for name, start in after.starts.items() if name in healthy.starts}
        assert starts == {name: healthy.starts[name] for name in starts} | case.starts, advice
    left = {finding.code for finding in found(case, place)}
    assert (case.code in left) == case.stays, (advice, [str(finding) for finding in found(case, place)])


def found(case: Case, place: Place) -> list[cw.Finding]:
    return cw.verify(place.data, deep=case.is_deep).findings
