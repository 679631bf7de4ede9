"""`LogConfig` compared with the results of Kafka's and Java's own classes (tests/vectors)."""

import dataclasses
import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

import cordwood as cw
from cordwood import properties as files
from cordwood._core import _log_config_checked

VECTORS = Path(__file__).parents[2] / "vectors"
CASES = json.loads((VECTORS / "log_config_cases.json").read_text())["cases"]


def test_every_setting_of_the_core_is_a_field_with_its_default() -> None:
    fields = _log_config_checked({})
    assert list(fields) == [field.name for field in dataclasses.fields(cw.LogConfig)]
    assert cw.LogConfig() == cw.LogConfig(**fields)
    for field in dataclasses.fields(cw.LogConfig):
        assert type(fields[field.name]) is field.type, field.name


def test_a_set_of_properties_is_a_config_or_an_error_with_fields() -> None:
    """The core is compared with Kafka's results for these sets in tests/rust/config/log_config.rs."""
    refused = 0
    for case in CASES:
        topic, broker = case.get("topic"), case.get("broker")
        given, kind = (topic, "topic") if broker is None else (broker, "broker")
        overrides = None if broker is None else topic
        try:
            config = cw.LogConfig.from_properties(given, overrides=overrides, kind=kind)
        except cw.ConfigError as error:
            refusal = error
        else:
            assert cw.LogConfig.from_properties(config.to_properties()) == config
            continue
        refused += 1
        assert (refusal.code, refusal.argument) == ("config", str(refusal).split(":")[0])
        assert refusal.argument in {**given, **(overrides or {}), "min.compaction.lag.ms": ""}
    assert 300 < refused < len(CASES) - 300


@pytest.mark.parametrize(
    "case", [c for c in CASES if "broker" in c and "settings" in c], ids=lambda c: str(c["broker"])
)
def test_a_brokers_file_has_the_same_meaning_as_in_kafka(case: dict[str, Any]) -> None:
    config = cw.LogConfig.from_properties(case["broker"], overrides=case.get("topic"), kind="broker")
    ours = config.to_properties()
    default = cw.LogConfig().to_properties()
    changed = {name: value for name, value in ours.items() if default.get(name) != value}
    expected = dict(case["settings"])
    if "internal.segment.bytes" in expected:
        expected.pop("segment.bytes")
    assert changed == expected


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        ({}, {}),
        ({"log.dirs": "/d", "segment.ms": "x"}, {}),
        ({"node.id": "1", "log.roll.ms": "5"}, {"segment_ms": 5}),
        ({"process.roles": "broker"}, {}),
        ({"segment.ms": "5"}, {"segment_ms": 5}),
        (
            {"message.max.bytes": "5"},
            "message.max.bytes is a broker setting, and the topic setting is max.message.bytes",
        ),
        ({"segmnt.bytes": "5"}, "the nearest is segment.bytes"),
        ({"RETENTION.MS": "5"}, "the nearest is retention.ms"),
        ({"on.damage": "5"}, "expected a topic setting, found"),
        ({"é": "5"}, "expected a topic setting, found"),
        ({"retention.ms": "x", "segment.ms": "y"}, "retention.ms: expected"),
        ({"remote.storage.enable": "true"}, "tiered storage is not supported"),
        ({"remote.storage.enable": " FALSE ", "local.retention.ms": "any"}, {}),
    ],
    ids=str,
)
def test_the_kind_of_properties_is_detected_from_their_names(given: dict[str, str], outcome: Any) -> None:
    if isinstance(outcome, dict):
        assert cw.LogConfig.from_properties(given) == cw.LogConfig(**outcome)
    else:
        with pytest.raises(cw.ConfigError, match=re.escape(outcome)):
            cw.LogConfig.from_properties(given)


def test_files_are_read_as_java_reads_them() -> None:
    malformed = 0
    for case in json.loads((VECTORS / "properties.json").read_text()):
        if "error" in case:
            with pytest.raises(cw.ConfigError, match="hexadecimal"):
                files.parse(case["text"])
            malformed += 1
            continue
        ours, javas = files.parse(case["text"]), case["properties"]
        if re.search(r"(^|[\r\n])[ \t\f]*\\[\r\n]*\Z", case["text"]):
            # a backslash alone at the end: Java reads an empty pair before \n, and none before \r\n
            ours.pop("", None)
            javas.pop("", None)
        assert ours == javas, case
    assert malformed > 100


def test_a_brokers_file_with_overrides(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes(
        b"# broker\r\nnode.id=1\r\nlog.dirs = /a,\\\r\n  /b\r\nx=\xe9\r\n"
        b"log.roll.hours: 2\r\nlog.segment.bytes 1048576\r\n"
    )
    config = cw.LogConfig.from_properties(file)
    assert config == cw.LogConfig(segment_ms=7_200_000, segment_bytes=1 << 20)
    overridden = cw.LogConfig.from_properties(str(file), overrides={"segment.ms": 5, "preallocate": True})
    assert overridden == dataclasses.replace(config, segment_ms=5, preallocate=True)
    with pytest.raises(FileNotFoundError):
        cw.LogConfig.from_properties(tmp_path / "missing.properties")


@pytest.mark.parametrize(
    ("field", "value", "expected", "found"),
    [
        ("segment_bytes", 13, "a whole number from 14 to 2147483647", "13"),
        ("segment_bytes", 2**31, "a whole number from 14 to 2147483647", "2147483648"),
        ("segment_bytes", True, "a whole number from 14 to 2147483647", "True"),
        ("segment_bytes", "4096", "a whole number from 14 to 2147483647", "'4096'"),
        ("segment_ms", 1.0, "a whole number from 1 to 9223372036854775807", "1.0"),
        ("compression_gzip_level", 0, "a whole number from 1 to 9, or -1", "0"),
        ("min_cleanable_dirty_ratio", float("nan"), "a number from 0 to 1", "nan"),
        ("min_cleanable_dirty_ratio", True, "a number from 0 to 1", "True"),
        ("preallocate", 1, "true or false", "1"),
        ("cleanup_policy", "keep", "any of compact, delete, separated by commas", "'keep'"),
        ("cleanup_policy", ["delete"], "any of compact, delete, separated by commas", "['delete']"),
        (
            "compression_type",
            None,
            "one of uncompressed, zstd, lz4, snappy, gzip, producer",
            "None",
        ),
        ("message_timestamp_type", "NoTimestampType", "one of CreateTime, LogAppendTime", "'NoTimestampType'"),
        ("message_timestamp_type", 0, "one of CreateTime, LogAppendTime", "0"),
        ("min_compaction_lag_ms", 2**63 - 1, None, None),
    ],
)
def test_a_value_outside_its_limits_is_an_error(
    field: str, value: Any, expected: str | None, found: str | None
) -> None:
    if expected is None:
        assert getattr(cw.LogConfig(**{field: value}), field) == value
        return
    with pytest.raises(cw.ConfigError) as raised:
        cw.LogConfig(**{field: value})
    assert (raised.value.code, raised.value.expected, raised.value.found) == ("config", expected, found)
    assert str(raised.value) == f"{field}: expected {expected}, found {found}"
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("retention_mss", "retention_ms"),
        ("retention.ms", "retention_ms"),
        ("Segment_Bytes", "segment_bytes"),
        ("x", ""),
    ],
)
def test_an_unknown_setting_is_an_error_with_the_nearest_name(name: str, meant: str) -> None:
    hint = f' (did you mean "{meant}"?)' if meant else ""
    expected = f"LogConfig() got an unexpected keyword argument {name!r}{hint}"
    for make in (cw.LogConfig, lambda **given: dataclasses.replace(cw.LogConfig(), **given)):
        with pytest.raises(TypeError, match=f"^{re.escape(expected)}$"):
            make(**{name: 1})


def test_a_minimum_lag_above_the_maximum_is_an_error() -> None:
    with pytest.raises(
        cw.ConfigError, match="min_compaction_lag_ms: expected at most max_compaction_lag_ms, which is 5"
    ):
        cw.LogConfig(min_compaction_lag_ms=6, max_compaction_lag_ms=5)


def test_a_configuration_is_a_frozen_value() -> None:
    config = cw.LogConfig(
        segment_bytes=4096, cleanup_policy=" delete , compact", message_timestamp_type="LogAppendTime"
    )
    assert (config.cleanup_policy, config.message_timestamp_type) == ("compact,delete", cw.TimestampType.LogAppendTime)
    assert pickle.loads(pickle.dumps(config)) == config
    assert len({config, dataclasses.replace(config), cw.LogConfig()}) == 2
    assert repr(cw.LogConfig()) == repr(cw.LogConfig(retention_ms=7 * 86_400_000))
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.segment_ms = 5  # type: ignore[misc]
    with pytest.raises(TypeError):
        cw.LogConfig(4096)  # type: ignore[misc]


def test_a_writer_checks_its_config_again(tmp_path: Path) -> None:
    class Sloppy:
        def to_properties(self) -> dict[str, str]:
            return {"segment.ms": "0"}

    with pytest.raises(cw.ConfigError, match=r"segment\.ms"):
        cw.LogWriter(tmp_path / "orders-0", config=Sloppy())


def test_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(cw.ConfigError, match="kind"):
        cw.LogConfig.from_properties({}, kind="server")  # type: ignore[arg-type]
    with pytest.raises(cw.ConfigError, match=r"segment\.ms"):
        cw.LogConfig.from_properties({"segment.ms": None})
