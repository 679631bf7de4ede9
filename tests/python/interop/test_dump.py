"""`cw.dump` beside Kafka's `DumpLogSegments`: the same bytes on both outputs, for the same files and options."""

from __future__ import annotations

import base64
import random
import struct
from pathlib import Path
from typing import Any

import corpus
import pytest

import cordwood as cw
from interop.kafka_classes import KafkaClasses

DECODERS = {
    "String": "org.apache.kafka.tools.api.StringDecoder",
    "Integer": "org.apache.kafka.tools.api.IntegerDecoder",
    "Long": "org.apache.kafka.tools.api.LongDecoder",
}
PARSERS = (
    "offsets_decoder",
    "transaction_log_decoder",
    "cluster_metadata_decoder",
    "remote_log_metadata_decoder",
    "share_group_state_decoder",
)
# starts and continuations of UTF-8 that are cut, too long, surrogates or beyond Unicode
BROKEN_UTF8 = b"\x41\x80\x8f\x90\x9f\xa0\xbf\xc0\xc2\xdf\xe0\xe1\xed\xef\xf0\xf1\xf4\xf5\xff"
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")


def files_of(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.suffix in SUFFIXES and path.name[0] != ".")


def kafka_options(options: dict[str, Any]) -> list[str]:
    arguments: list[str] = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        arguments += [option] if value is True else [option, DECODERS.get(str(value), str(value))]
    return arguments


def compare(kafka: KafkaClasses, files: list[Path], options: dict[str, Any]) -> tuple[bytes, bool]:
    """Compare the outputs; return the text, and whether the tool ended with an exception."""
    # first, because Kafka's tool creates an index that is missing
    dump = cw.dump(files, **options)
    ours, error = "", None
    try:
        for block in dump:
            ours += block
    except (cw.CordwoodError, OSError) as wrong:
        error = wrong
    arguments = ["--files", ",".join(map(str, files)), *kafka_options(options)]
    theirs = kafka.ask("dump", arguments=arguments)
    out, err = base64.b64decode(theirs["out"]), base64.b64decode(theirs["err"])
    told = f"{arguments}\nKafka: {theirs['failed']}\ncordwood: {error}"
    for number, (found, expected) in enumerate(zip(ours.encode().split(b"\n"), out.split(b"\n"), strict=False)):
        assert found == expected, f"line {number} of {told}"
    assert ours.encode() == out, told
    assert (error is None) == (theirs["failed"] is None), told
    messages = "".join(f"{line}\n" for line in dump.messages)
    assert messages.encode() == err, told
    return out, error is not None


def random_options(dice: random.Random) -> dict[str, Any]:
    flags = ["deep_iteration", "print_data_log", "skip_record_metadata", "verify_index_only"]
    options: dict[str, Any] = {flag: True for flag in flags if dice.random() < 0.35}
    if dice.random() < 0.15:
        options["index_sanity_check"] = True
    if dice.random() < 0.2:
        options["max_bytes"] = dice.choice([0, 17, 61, 100, 1000, 5000, 60000])
    if dice.random() < 0.2:
        options["max_message_size"] = dice.choice([0, 60, 500, 3000])
    for decoder in ("key_decoder_class", "value_decoder_class"):
        if dice.random() < 0.15:
            options[decoder] = dice.choice(list(DECODERS))
    if dice.random() < 0.1:
        options[dice.choice(PARSERS)] = True
    return options


def written(directory: Path, dice: random.Random) -> Path:
    """A partition that our writer wrote: several codecs and segments, broken UTF-8, nulls, headers."""
    path = directory / f"written-{dice.randrange(100)}"
    clock = 1_700_000_000_000
    for codec in ("uncompressed", "gzip", "snappy", "lz4", "zstd"):
        config = cw.LogConfig(segment_bytes=20_000, index_interval_bytes=300, compression_type=codec)
        with cw.LogWriter(path, config=config, flush="none") as writer:
            for _ in range(25):
                records = []
                for _ in range(dice.randrange(1, 12)):
                    clock += dice.randrange(-40, 100)
                    broken = bytes(dice.choices(BROKEN_UTF8, k=dice.randrange(30)))
                    value = dice.choice([broken, None, struct.pack(">q", dice.getrandbits(63)), b"value %d" % clock])
                    key = dice.choice([None, b"", struct.pack(">i", dice.getrandbits(31)), b"longer than a number"])
                    headers = [(dice.choice(["", "a", "größe"]), broken)] * dice.choice([0, 0, 1, 3])
                    records.append(cw.Record(value=value, key=key, headers=headers, timestamp=clock))
                writer.append_many(records)
    return path


def damage(path: Path, dice: random.Random) -> None:
    """Change some bytes, cut the file, or append to it."""
    content = bytearray(path.read_bytes())
    for _ in range(dice.randrange(1, 4)):
        if not content:
            content += bytes(dice.randrange(1, 40))
            continue
        at = dice.randrange(len(content))
        match dice.randrange(6):
            case 0 | 1:
                content[at] ^= 1 << dice.randrange(8)
            case 2:
                content[at : at + 4] = struct.pack(">i", dice.choice([0, -1, 13, 14, 2**31 - 1, len(content)]))
            case 3:
                del content[at:]
            case 4:
                content += bytes(dice.randrange(1, 5000))
            case 5:
                content += bytes(dice.choices(range(256), k=dice.randrange(1, 200)))
    path.write_bytes(content)


@pytest.mark.parametrize("seed", range(3))
def test_files_of_our_writer(kafka: KafkaClasses, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    files = files_of(written(tmp_path, dice))
    assert {path.suffix for path in files} == {".log", ".index", ".timeindex", ".snapshot"}
    for options in ({}, {"deep_iteration": True}, {"print_data_log": True}, {"index_sanity_check": True}):
        out, has_failed = compare(kafka, files, options)
        assert len(out) > 1000
        assert not has_failed
    for _ in range(10):
        compare(kafka, dice.sample(files, k=min(len(files), 6)), random_options(dice))


@pytest.mark.parametrize("seed", range(8))
def test_damaged_files(kafka: KafkaClasses, copied: Any, seed: int) -> None:
    dice = random.Random(seed)
    sources = [part.path for part in corpus.partitions()]
    ended, whole = 0, 0
    for number in range(40):
        source = dice.choice(sources)
        directory = copied(source, under=f"{seed}-{number}")
        files = files_of(directory)
        for path in dice.sample(files, k=min(len(files), dice.randrange(1, 4))):
            damage(path, dice)
        if dice.random() < 0.1:
            dice.choice(files).unlink()
        _, has_failed = compare(kafka, dice.sample(files, k=min(len(files), 5)), random_options(dice))
        ended, whole = ended + has_failed, whole + (not has_failed)
    # the cases are of both kinds
    assert min(ended, whole) >= 5, (ended, whole)


def test_names_that_are_unusual(kafka: KafkaClasses, tmp_path: Path) -> None:
    log = corpus.partition("01-small").path / "00000000000000000000.log"
    for name in (
        "7.log",
        "+7.log",
        "5.x.log",
        "-3.log",
        "notes.log",
        ".log",
        "x",
        "x.",
        "a.log.bak",
        "bootstrap.checkpoint",
    ):
        path = tmp_path / name
        path.write_bytes(log.read_bytes())
        compare(kafka, [path, log], {})
    (tmp_path / "00000000000000000038-0000000001.checkpoint").write_bytes(log.read_bytes())
    compare(kafka, [tmp_path / "00000000000000000038-0000000001.checkpoint"], {"cluster_metadata_decoder": True})
    (tmp_path / "38.checkpoint").write_bytes(log.read_bytes())
    compare(kafka, [tmp_path / "38.checkpoint"], {})
    compare(kafka, [tmp_path / ".." / tmp_path.name / "7.log", tmp_path / "missing.log"], {"deep_iteration": True})
    compare(kafka, [tmp_path / "4.snapshot"], {})
