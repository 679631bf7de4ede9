"""`cordwood dump`: the contents of a partition's files, as `kafka-dump-log` prints them."""

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cordwood import ConfigError, Dump, DumpRows
from cordwood import dump as dump_of
from cordwood.cli.exit_codes import FAILED, UsageError, say, sentence
from cordwood.cli.formats import ROW_SUFFIXES, STREAM_SUFFIX, Format, format_of, write_arrow, write_parquet
from cordwood.cli.output import Output, output_of
from cordwood.cli.path import parse_path
from cordwood.cli.progress import counted
from cordwood.cli.terminal import escape
from cordwood.times import FORMS, parse

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["dump"]

_MAX_BYTES = 2**31 - 1


def dump(  # noqa: PLR0913, PLR0917  (a command's options)
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            parser=parse_path,
            metavar="[PATH]...",
            help="Files, and directories: a partition or a data directory stands for its files in name order.",
        ),
    ] = None,
    files: Annotated[str | None, typer.Option(help="Comma-separated paths, as an alternative to arguments.")] = None,
    deep_iteration: Annotated[
        bool, typer.Option("--deep-iteration", help="A line for each record, not only for each batch.")
    ] = False,
    print_data_log: Annotated[
        bool, typer.Option("--print-data-log", help="Also keys and values. The decoders imply this.")
    ] = False,
    index_sanity_check: Annotated[
        bool, typer.Option("--index-sanity-check", help="Only the check that a broker does when it opens an index.")
    ] = False,
    verify_index_only: Annotated[
        bool, typer.Option("--verify-index-only", help="Compare the entries of indexes, and do not print them.")
    ] = False,
    max_message_size: Annotated[
        int, typer.Option(min=0, max=_MAX_BYTES, help="Bytes within which the batch of an index entry must end.")
    ] = 5 << 20,
    max_bytes: Annotated[
        int, typer.Option(min=0, max=_MAX_BYTES, help="Read only so many bytes of each .log.")
    ] = _MAX_BYTES,
    skip_record_metadata: Annotated[
        bool, typer.Option("--skip-record-metadata", help="Only the keys and values of records.")
    ] = False,
    key_decoder_class: Annotated[
        str | None,
        typer.Option(help="How keys are shown: String (the default), Integer, Long, Double, Bytes, or Kafka's class."),
    ] = None,
    value_decoder_class: Annotated[str | None, typer.Option(help="How values are shown, in the same way.")] = None,
    offsets_decoder: Annotated[bool, typer.Option("--offsets-decoder", help="Records of __consumer_offsets.")] = False,
    transaction_log_decoder: Annotated[
        bool, typer.Option("--transaction-log-decoder", help="Records of __transaction_state.")
    ] = False,
    cluster_metadata_decoder: Annotated[
        bool, typer.Option("--cluster-metadata-decoder", help="Records of __cluster_metadata and its snapshots.")
    ] = False,
    remote_log_metadata_decoder: Annotated[
        bool, typer.Option("--remote-log-metadata-decoder", help="Records of __remote_log_metadata.")
    ] = False,
    share_group_state_decoder: Annotated[
        bool, typer.Option("--share-group-state-decoder", help="Records of __share_group_state.")
    ] = False,
    output_format: Annotated[
        Literal["text", "jsonl", "csv", "arrow", "parquet"] | None,
        typer.Option(
            "--format",
            help="A row for each batch, with --deep-iteration for each record, instead of the text. By default by the "
            "suffix of -o, otherwise text. Needs pyarrow.",
        ),
    ] = None,
    start_offset: Annotated[int | None, typer.Option(help="Rows from this offset on. With another format.")] = None,
    end_offset: Annotated[int | None, typer.Option(help="Rows below this offset.")] = None,
    since: Annotated[str | None, typer.Option(help=f"Rows from this time on: {FORMS}.")] = None,
    until: Annotated[str | None, typer.Option(help="Rows before this time, in the same forms.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A file, pipe or device. By default - (standard output).")
    ] = None,
) -> None:
    """Print the contents of files, byte for byte as kafka-dump-log does, with its options and no JVM.

    Files: .log .index .timeindex .txnindex .snapshot .checkpoint, with any damage, also outside a partition. Indexes
    are compared with the .log beside them. What does not match is printed to stderr, as by kafka-dump-log.

    \b
    cordwood dump orders-0                                        everything in a partition
    cordwood dump --deep-iteration orders-0/00000000000000000000.log
    cordwood dump --print-data-log --value-decoder-class Long counts-0/*.log
    cordwood dump --offsets-decoder __consumer_offsets-12
    cordwood dump --verify-index-only --files a/00000000000000000000.index,b/00000000000000000000.index
    cordwood dump --format parquet -o batches.parquet orders-0

    On a terminal, characters that would control it are escaped. Where kafka-dump-log ends with an exception, the output
    ends at the same place, a message says why, and the exit code is 1.
    """  # noqa: D301
    given = _given(paths, files)
    # nothing is written next to a file that is dumped
    target, *_ = [output_of(output, str(path if path.is_dir() else path.parent)) for path in given]
    text = dump_of(
        given,
        deep_iteration=deep_iteration,
        print_data_log=print_data_log,
        index_sanity_check=index_sanity_check,
        verify_index_only=verify_index_only,
        max_message_size=max_message_size,
        max_bytes=max_bytes,
        skip_record_metadata=skip_record_metadata,
        key_decoder_class=key_decoder_class,
        value_decoder_class=value_decoder_class,
        offsets_decoder=offsets_decoder,
        transaction_log_decoder=transaction_log_decoder,
        cluster_metadata_decoder=cluster_metadata_decoder,
        remote_log_metadata_decoder=remote_log_metadata_decoder,
        share_group_state_decoder=share_group_state_decoder,
    )
    ranges = {"start_offset": start_offset, "end_offset": end_offset, **_times(since, until)}
    if output_format == "text" or (output_format is None and not _has_rows(target.path)):
        if any(bound is not None for bound in ranges.values()):
            raise UsageError("offsets and times select rows: use --format jsonl, csv, arrow or parquet")
        _write_text(text, target)
    else:
        _write_rows(text.rows(**ranges), format_of(target.path, output_format), target, output)


def _has_rows(path: Path | None) -> bool:
    return path is not None and path.suffix.lower() in ROW_SUFFIXES


def _times(since: str | None, until: str | None) -> dict[str, int | None]:
    return {"start_time": None if since is None else parse(since), "end_time": None if until is None else parse(until)}


def _write_text(text: Dump, target: Output) -> None:
    with target.opened(binary=False) as out:
        shown: Callable[[bytes], bytes] = _escaped if out.isatty() else bytes
        try:
            for block in counted(_blocks(text), _line_count, to_file=target.path is not None, noun="lines"):
                out.write(shown(block))
        except ConfigError as error:
            # the name of a file, not the usage of the command
            out.flush()
            say(sentence(error))
            raise typer.Exit(FAILED) from None


def _write_rows(rows: DumpRows, written_format: Format, target: Output, output: Path | None) -> None:
    is_text = written_format in {"jsonl", "csv"}
    with target.opened(binary=not is_text) as out:
        batches = counted(rows, _row_count, to_file=target.path is not None, noun="rows")
        match written_format:
            case "arrow":
                is_stream = not target.is_file or (output is not None and output.suffix.lower() == STREAM_SUFFIX)
                write_arrow(rows.schema, batches, out, stream=is_stream)
            case "parquet":
                write_parquet(rows.schema, batches, out)
            case "jsonl" | "csv":
                lines = _json_lines(batches) if written_format == "jsonl" else _csv_lines(rows.schema.names, batches)
                for block in lines:
                    out.write(_escaped(block) if out.isatty() else block)


def _json_lines(batches: Iterable["pa.RecordBatch"]) -> Iterator[bytes]:
    for batch in batches:
        yield b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in batch.to_pylist())


def _csv_lines(names: list[str], batches: Iterable["pa.RecordBatch"]) -> Iterator[bytes]:
    """Yield CSV; a list of header keys is a JSON array."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(names)
    for batch in batches:
        for row in batch.to_pylist():
            writer.writerow(
                json.dumps(cell, ensure_ascii=False) if isinstance(cell, list) else cell for cell in row.values()
            )
        yield lines.getvalue().encode()
        lines.seek(0)
        lines.truncate()
    yield lines.getvalue().encode()


def _row_count(batch: "pa.RecordBatch") -> int:
    return int(batch.num_rows)


def _given(paths: list[Path] | None, files: str | None) -> list[Path]:
    named = [] if files is None else files.rstrip(",").split(",")
    if not all(named):
        raise UsageError(f"--files: expected paths separated by commas, found {files!r}")
    given = [*map(Path, named), *(paths or [])]
    if not given:
        raise UsageError("expected a file or a directory, or --files with paths separated by commas")
    return given


def _blocks(dump: Dump) -> Iterator[bytes]:
    """Yield the text; write what is for stderr."""
    while (block := dump._next_block()) is not None:  # noqa: SLF001  (it is for this command)
        text, is_message = block
        if not is_message:
            yield text
        elif sys.stderr is not None:
            sys.stdout.flush()
            sys.stderr.write(text.decode() if not sys.stderr.isatty() else _escaped(text).decode())


def _escaped(text: bytes) -> bytes:
    return "\n".join(map(escape, text.decode().split("\n"))).encode()


def _line_count(block: bytes) -> int:
    return block.count(b"\n")
