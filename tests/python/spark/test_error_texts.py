"""The text of an error of the Spark source, the only part that reaches the driver, is parsed exactly."""

from __future__ import annotations

import pickle
import traceback
from typing import Any

import needs_pyspark  # noqa: F401
import pytest
from pyspark.errors import PySparkException

from cordwood import errors as core_errors
from cordwood.errors import CordwoodError
from cordwood.spark import errors
from cordwood.spark.errors import SparkLogError

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

EXAMPLES = [
    (
        SparkLogError("CORDWOOD_CORRUPT_BATCH", "bad CRC", topic="orders", partition=3, segment=400, position=61),
        "[CORDWOOD_CORRUPT_BATCH] orders-3 segment 400 position 61: bad CRC",
    ),
    (
        SparkLogError("CORDWOOD_CORRUPT_BATCH", "x", topic="a-b.c_d-0", partition=17, segment=0, position=0),
        "[CORDWOOD_CORRUPT_BATCH] a-b.c_d-0-17 segment 0 position 0: x",
    ),
    (
        SparkLogError("CORDWOOD_OFFSET_OUT_OF_RANGE", "offset 7", topic="orders", partition=3),
        "[CORDWOOD_OFFSET_OUT_OF_RANGE] orders-3: offset 7",
    ),
    (
        SparkLogError("CORDWOOD_NOT_FOUND", "/data/orders-3: expected a directory"),
        "[CORDWOOD_NOT_FOUND] /data/orders-3: expected a directory",
    ),
]


def test_every_error_class_of_the_core_has_a_code() -> None:
    classes = {
        kind for kind in vars(core_errors).values() if isinstance(kind, type) and issubclass(kind, CordwoodError)
    }
    # the rest: for a class that a later version adds
    assert classes == {kind for kind, _ in errors._CODES if issubclass(kind, CordwoodError)}  # noqa: SLF001
    codes = {code for _, code in errors._CODES}  # noqa: SLF001
    assert all(f"| `{code}` |" in (errors.__doc__ or "") for code in codes)
    refused = core_errors.InvalidProducerEpochError("producer: expected epoch 1 or above of producer 7, found 0")
    assert SparkLogError.of(refused).code == "CORDWOOD_PRODUCER_REFUSED"


class Captured(PySparkException):
    """As a `PythonException` of Spark: the traceback of the worker is a parameter of the message."""

    def __init__(self, raised: str) -> None:
        super().__init__("An exception was thrown from the Python worker.")
        self.raised = raised

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802  (Spark's name)
        return {"msg": "m", "traceback": self.raised}


def parts(error: SparkLogError | None) -> tuple[Any, ...]:
    assert error is not None
    return (error.code, error.topic, error.partition, error.segment, error.position, error.reason, error.sentence)


def as_spark_shows(error: SparkLogError) -> list[str | Exception]:
    """The texts and exceptions that contain an error: a traceback, a stream's message, the JVM's text, exceptions."""
    try:
        raise error
    except SparkLogError:
        raised = traceback.format_exc()
    jvm = f"Job aborted due to stage failure: Task 0 failed 4 times:\n{raised}\n\tat org.apache.spark.api.python\n"
    return [
        str(error),
        raised,
        f"data source cordwood throw exception: {error} SQLSTATE: 38000",
        jvm,
        PySparkException(jvm),
        Captured(raised),
        error,
        pickle.loads(pickle.dumps(error)),
    ]


@pytest.mark.parametrize(("error", "sentence"), EXAMPLES, ids=[sentence for _, sentence in EXAMPLES])
def test_the_text_begins_with_the_code_and_the_place(error: SparkLogError, sentence: str) -> None:
    assert error.sentence == sentence
    assert str(error).startswith(f"{sentence} | ")
    for text in as_spark_shows(error):
        assert parts(errors.parse(text)) == parts(error)


TOPICS = st.none() | st.from_regex("[A-Za-z0-9._-]{1,12}", fullmatch=True)
NUMBERS = st.none() | st.integers(0, (1 << 63) - 1)
CODES = st.sampled_from([value for name, value in vars(errors).items() if name.isupper() and not name.startswith("_")])
# parts of the format itself, which would confuse a parser that searches the sentence
PIECES = st.sampled_from(
    [
        str(EXAMPLES[0][0]),
        " | cordwood: ",
        " | cordwood: {}",
        '{"code": "X"}',
        "[CORDWOOD_IO] ",
        "t-0: ",
        "\n",
        "\r",
        "\u2028",
    ]
)
REASONS = st.lists(PIECES | st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=5).map("".join)


@given(CODES, REASONS, TOPICS, st.tuples(NUMBERS, NUMBERS, NUMBERS))
def test_every_error_is_read_back_from_every_text(
    code: str, reason: str, topic: str | None, numbers: tuple[int | None, ...]
) -> None:
    partition, segment, position = numbers
    error = SparkLogError(code, reason, topic=topic, partition=partition, segment=segment, position=position)
    for text in as_spark_shows(error):
        assert parts(errors.parse(text)) == parts(error)


@pytest.mark.parametrize(
    "text",
    ["", "nothing of ours", "[CORDWOOD", "[OTHER_CODE] orders-3: x", " | cordwood: ", ' | cordwood: {"code": 5}']
    + [str(EXAMPLES[0][0])[:cut] for cut in range(0, 120, 7)],
)
def test_a_text_without_a_whole_error_is_none(text: str) -> None:
    assert errors.parse(text) is None
    assert errors.parse(ValueError(text)) is None
