"""Every result is a value: it compares by its fields, and pickles and copies as an equal one."""

from __future__ import annotations

import copy
import json
import pickle
import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from enum import Enum
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import corpus
import pytest
from value_examples import classes, examples, fields

import cordwood as cw

NO_VALUES = {
    "Log": "a handle, which pickles as the arguments that open it again",
    "LogDir": "a handle, which pickles as the arguments that open it again",
    "Scan": "a query of a handle, which pickles as the arguments of the call",
    "Segments": "a view of an open log",
    "Position": "a handle in a log",
    "Follow": "an iterator",
    "Records": "an iterator",
    "Dump": "an iterator",
    "DumpRows": "an iterator",
    "LogWriter": "the owner of a lock",
    "Producer": "a part of a writer",
    "Transaction": "a part of a writer",
    "RetentionTimer": "a thread",
    "OffsetIndex": "an open file",
    "TimeIndex": "an open file",
    "TransactionIndex": "an open file",
    "OffsetIndexWriter": "an open file",
    "TimeIndexWriter": "an open file",
    "TransactionIndexWriter": "an open file",
    "_Query": "internal; it pickles as its options",
    **dict.fromkeys(("_Counter", "_Lines", "_Profiler", "_Stream", "_TaskReader", "_Unflushed"), "internal; a state"),
    **dict.fromkeys(("_LogPosition", "_Zone"), "internal; it stays in its process"),
}
VALUES = sorted(
    name for name, member in classes().items() if name not in NO_VALUES and not issubclass(member, BaseException)
)
# they have rows, or options of Spark
UNHASHABLE = ("ClusterMetadata", "Table", "_Piece", "_SourceOptions", "_Task")
# those of the class itself are tried elsewhere
OWN_PICKLES = ("FlushMode", "LogConfig", "Record", "Segment", "TimestampType", "_Piece", "_SourceOptions", "_Task")
MAX_EXAMPLES = 60
DAMAGED_RANGE = {
    "file": {"Unix": [97]},
    "start_position": 0,
    "end_position": 1,
    "start_offset": 0,
    "end_offset": None,
    "reason": "x",
}
MAX_CHANGES = 40


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    return examples(tmp_path_factory.mktemp("values"))


def some(found: dict[str, list[Any]], name: str) -> list[Any]:
    """Examples of a class; if there are many, those whose representations differ first."""
    by_shape: dict[str, list[Any]] = {}
    for value in found[name]:
        by_shape.setdefault("".join(c for c in repr(value) if not c.isdigit()), []).append(value)
    ordered = [value for values in by_shape.values() for value in values[:1]]
    ordered += [value for values in by_shape.values() for value in values[1:]]
    return ordered[:MAX_EXAMPLES]


def test_every_class_is_a_value_or_is_known_as_none(found: dict[str, list[Any]]) -> None:
    assert [name for name in VALUES if name not in found] == []
    assert [name for name in NO_VALUES if name not in classes()] == []


@pytest.mark.parametrize("name", VALUES)
def test_a_pickled_or_copied_value_is_an_equal_one(found: dict[str, list[Any]], name: str) -> None:
    for value in some(found, name):
        copies = [pickle.loads(pickle.dumps(value, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
        for other in [*copies, copy.copy(value), copy.deepcopy(value)]:
            assert type(other) is type(value)
            assert fields(other) == fields(value)
            assert other == value
            assert repr(other) == repr(value) or name in ("_Piece", "_Task")
            if name not in UNHASHABLE:
                assert hash(other) == hash(value)
        assert value != repr(value)
        if name in UNHASHABLE:
            with pytest.raises(TypeError, match="unhashable"):
                hash(value)


@pytest.mark.parametrize("name", VALUES)
def test_values_are_equal_if_their_fields_are(found: dict[str, list[Any]], name: str) -> None:
    values = some(found, name)
    shown = [fields(value) for value in values]
    pairs = [(a, b) for a in range(len(values)) for b in range(a)]
    for a, b in pairs:
        assert (values[a] == values[b]) == (shown[a] == shown[b]), (shown[a], shown[b])
        if name not in UNHASHABLE and values[a] == values[b]:
            assert hash(values[a]) == hash(values[b])


def changes(state: Any) -> Iterator[Any]:
    """The same with one number, text or boolean changed, or an item removed from a list or added to an empty one."""
    match state:
        case bool():
            yield not state
        case int():
            yield from (state + 1, state - 1)
        case str():
            yield f"{state}x"
        case None:
            yield from (7, "x", [7, 7], [[7, 7, 7]], {"Unix": [97]})
        case []:
            yield from ([7], ["x"], [{"Unix": [97]}], [DAMAGED_RANGE])
            yield from ([[None] * columns] for columns in range(1, 10))
        case list():
            for place, item in enumerate(state[:20]):
                yield from ([*state[:place], change, *state[place + 1 :]] for change in changes(item))
            yield state[:-1]
        case dict():
            for key, item in state.items():
                yield from ({**state, key: change} for change in changes(item))


@pytest.mark.parametrize("name", [name for name in VALUES if name not in OWN_PICKLES])
def test_a_change_of_a_field_makes_a_value_another(found: dict[str, list[Any]], name: str) -> None:
    changed = set()
    for value in some(found, name):
        restored, arguments = value.__reduce__()
        [state] = map(json.loads, arguments)
        # that of a table is a list
        keys = range(len(state)) if isinstance(state, list) else list(state)
        for key in keys:
            for change in islice(changes(state[key]), MAX_CHANGES):
                other_state = copy.copy(state)
                other_state[key] = change
                try:
                    other = restored(json.dumps(other_state))
                except cw.ConfigError:
                    # a word of which there are only some, or a number beyond its type
                    continue
                assert other != value, (key, change)
                if name not in UNHASHABLE:
                    assert hash(other) != hash(value), (key, change)
                changed.add(key)
        # words of which there are only some: they are compared by the examples
        words = {key for key in keys if isinstance(state[key], str)}
    assert set(keys) - changed <= words


@pytest.mark.parametrize("name", [name for name in VALUES if name not in OWN_PICKLES])
def test_a_damaged_pickle_is_an_error_or_a_value(found: dict[str, list[Any]], name: str) -> None:
    dice = random.Random(name)
    value = some(found, name)[0]
    restored, [state] = value.__reduce__()
    parts = (state[:-1], state + "}", state[: len(state) // 2])
    for damaged in ("", "null", "[]", "{}", "7", '"x"', "[" * 10_000, *parts):
        with pytest.raises(cw.ConfigError, match=rf"^pickle: expected the state of a {name}"):
            restored(damaged)
    for _ in range(500):
        place = dice.randrange(len(state))
        damaged = state[:place] + dice.choice('0917-.",:[]{}ntfe\\ é') + state[place + 1 :]
        try:
            repr(restored(damaged))
        except cw.ConfigError:
            continue
    with pytest.raises(TypeError):
        restored(b"{}")


def test_a_value_has_no_public_constructor() -> None:
    made = ("AbortedTransaction", "FlushMode", "LogConfig", "PlannedSegment", "Record", "Split", "TimestampType")
    for name in VALUES:
        if name not in made and not name.startswith("_"):
            with pytest.raises(TypeError, match=r"cannot create|No constructor"):
                classes()[name]()


def test_a_path_that_is_no_text_pickles(tmp_path: Path) -> None:
    path = Path(str(tmp_path) + "/\udcff/orders-0")
    path.parent.mkdir()
    with cw.LogWriter(path) as writer:
        writer.append(b"value")
    for value in (cw.verify(path), cw.LogWriter.plan_recovery(path), cw.rebuild_indexes(path), *cw.Log(path).plan(1)):
        assert pickle.loads(pickle.dumps(value)) == value
        assert fields(pickle.loads(pickle.dumps(value))) == fields(value)


def damaged_paths(found: cw.Verification) -> list[str]:
    return [finding.file for finding in found.findings]


def test_values_pass_between_processes() -> None:
    found = cw.verify(corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0")
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert pool.submit(copy.copy, found).result() == found
        assert pool.submit(damaged_paths, found).result() == damaged_paths(found) != []


def test_an_enum_is_the_same_object_after_pickling() -> None:
    for member in cw.TimestampType:
        assert isinstance(member, Enum)
        assert pickle.loads(pickle.dumps(member)) is member
