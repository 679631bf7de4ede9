"""`cordwood dump`: the contents of a partition's files, as `kafka-dump-log` prints them."""

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Generic, Literal, TypeVar

from cordwood import CordwoodError, Dump, DumpRows
from cordwood import dump as dump_of
from cordwood.cli.declared import Argument, Option
from cordwood.cli.exit_codes import FailedError, NothingFoundError, UsageError, say, sentence
from cordwood.cli.formats import SUFFIXES, Format, csv_line, format_of_suffix, json_line, row_count, write_batches
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES, MAX_BATCH_BYTES_OPTION
from cordwood.cli.output import Output, output_of
from cordwood.cli.path import parse_path
from cordwood.cli.progress import counted
from cordwood.cli.terminal import escape
from cordwood.times import FORMS

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["dump"]

_T = TypeVar("_T")
_Format = Literal["text", "jsonl", "csv", "arrow", "parquet"]

_MAX_BYTES = 2**31 - 1

_SUFFIXES: dict[str, _Format] = {".txt": "text", ".log": "text", **SUFFIXES}


def dump(  # noqa: PLR0913, PLR0917  (a command's options)
    paths: Annotated[
        list[Path] | None,
        Argument(
            parser=parse_path,
            metavar="[PATH]...",
            help="Files, and directories: a partition or a data directory stands for its files in name order.",
        ),
    ] = None,
    files: Annotated[str | None, Option(help="Comma-separated paths, as an alternative to arguments.")] = None,
    deep_iteration: Annotated[
        bool, Option("--deep-iteration", help="A line for each record, not only for each batch.")
    ] = False,
    print_data_log: Annotated[
        bool, Option("--print-data-log", help="Also keys and values. The decoders imply this.")
    ] = False,
    index_sanity_check: Annotated[
        bool, Option("--index-sanity-check", help="Only the check that a broker does when it opens an index.")
    ] = False,
    verify_index_only: Annotated[
        bool, Option("--verify-index-only", help="Compare the entries of indexes, and do not print them.")
    ] = False,
    max_message_size: Annotated[
        int, Option(min=0, max=_MAX_BYTES, help="Bytes within which the batch of an index entry must end.")
    ] = 5 << 20,
    max_bytes: Annotated[int, Option(min=0, max=_MAX_BYTES, help="Read at most so many bytes of a .log.")] = _MAX_BYTES,
    max_batch_bytes: Annotated[int, Option(**MAX_BATCH_BYTES_OPTION)] = DEFAULT_MAX_BATCH_BYTES,
    skip_record_metadata: Annotated[
        bool, Option("--skip-record-metadata", help="Only the keys and values of records.")
    ] = False,
    key_decoder_class: Annotated[
        str | None,
        Option(help="How keys are shown: String (the default), Integer, Long, Double, Bytes, or Kafka's class."),
    ] = None,
    value_decoder_class: Annotated[str | None, Option(help="How values are shown, in the same way.")] = None,
    offsets_decoder: Annotated[bool, Option("--offsets-decoder", help="Records of __consumer_offsets.")] = False,
    transaction_log_decoder: Annotated[
        bool, Option("--transaction-log-decoder", help="Records of __transaction_state.")
    ] = False,
    cluster_metadata_decoder: Annotated[
        bool, Option("--cluster-metadata-decoder", help="Records of __cluster_metadata and its snapshots.")
    ] = False,
    remote_log_metadata_decoder: Annotated[
        bool, Option("--remote-log-metadata-decoder", help="Records of __remote_log_metadata.")
    ] = False,
    share_group_state_decoder: Annotated[
        bool, Option("--share-group-state-decoder", help="Records of __share_group_state.")
    ] = False,
    output_format: Annotated[
        _Format | None,
        Option(
            "--format",
            help="A row for each batch, with --deep-iteration for each record, instead of the text. By default by the "
            "suffix of -o; text for standard output, and for a file without a suffix. Rows need pyarrow.",
        ),
    ] = None,
    start_offset: Annotated[int | None, Option(help="Rows from this offset on. With another format.")] = None,
    end_offset: Annotated[int | None, Option(help="Rows below this offset.")] = None,
    since: Annotated[str | None, Option(help=f"Rows from this time on: {FORMS}.")] = None,
    until: Annotated[str | None, Option(help="Rows before this time, in the same forms.")] = None,
    output: Annotated[
        Path | None, Option("-o", "--output", help="A file, pipe or device. By default - (standard output).")
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
    ends at the same place, also in a file; a message says why, and the exit code is 1. It is also 1 if there are no
    rows, and then no file is written.
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
        max_batch_bytes=max_batch_bytes,
        skip_record_metadata=skip_record_metadata,
        key_decoder_class=key_decoder_class,
        value_decoder_class=value_decoder_class,
        offsets_decoder=offsets_decoder,
        transaction_log_decoder=transaction_log_decoder,
        cluster_metadata_decoder=cluster_metadata_decoder,
        remote_log_metadata_decoder=remote_log_metadata_decoder,
        share_group_state_decoder=share_group_state_decoder,
    )
    ranges: dict[str, Any] = {"start_offset": start_offset, "end_offset": end_offset, **_times(since, until)}
    known = SUFFIXES if output_format else _SUFFIXES
    written_format = format_of_suffix(target.path, output_format, known) or "text"
    if written_format == "text":
        if any(bound is not None for bound in ranges.values()):
            raise UsageError("offsets and times select rows: use --format jsonl, csv, arrow or parquet")
        _write_text(text, target)
    else:
        _write_rows(text.rows(**ranges), written_format, target)


def _times(since: str | None, until: str | None) -> dict[str, str | None]:
    if since is None and until is None:
        return {}
    from cordwood.cli.moment import parse_time, with_unit  # noqa: PLC0415  (most calls need no time)

    return {
        "start_time": None if since is None else with_unit(parse_time("--since", since)),
        "end_time": None if until is None else with_unit(parse_time("--until", until)),
    }


class _Readable(Generic[_T]):
    """Iterates to the end or to the first error, where Kafka's tool ends too."""

    def __init__(self, items: Iterator[_T]) -> None:
        self._items = items
        self._error: CordwoodError | None = None

    def __iter__(self) -> Iterator[_T]:
        try:
            yield from self._items
        except CordwoodError as error:
            self._error = error

    def raise_error(self, target: Output) -> None:
        """Raise the error, if there was one. A file has the same then as a pipe."""
        if self._error is None:
            return
        if target.is_file:
            say(f"{target.path} ends where the following error is")
        raise _failed(self._error)


def _failed(error: CordwoodError) -> FailedError:
    """Say an error of any kind, such as a file that does not exist: kafka-dump-log ends with the same exit code."""
    say(sentence(error, "dump"))
    return FailedError()


def _write_text(text: Dump, target: Output) -> None:
    blocks = _Readable(_blocks(text))
    with target.opened(binary=False) as out:
        shown: Callable[[bytes], bytes] = _escaped if out.isatty() else bytes
        for block in counted(blocks, _line_count, to_file=target.path is not None, noun="lines"):
            out.write(shown(block))
    blocks.raise_error(target)


def _write_rows(rows: DumpRows, written_format: Format, target: Output) -> None:
    # without a row no file is written
    try:
        first = next(rows, None)
    except CordwoodError as error:
        raise _failed(error) from None
    if first is None:
        raise NothingFoundError("the files have no batch or record that the options select")
    batches = _Readable(chain([first], rows))
    is_text = written_format in {"jsonl", "csv"}
    with target.opened(binary=not is_text) as out:
        shown = counted(batches, row_count, to_file=target.path is not None, noun="rows")
        if not is_text:
            write_batches(rows.schema, shown, out, written_format, target)
        elif written_format == "csv":
            _write_lines(chain([csv_line(rows.schema.names)], _lines(shown, lambda row: csv_line(row.values()))), out)
        else:
            _write_lines(_lines(shown, json_line), out)
    batches.raise_error(target)


def _lines(batches: Iterable["pa.RecordBatch"], line: Callable[[dict[str, Any]], str]) -> Iterator[str]:
    """Yield the lines of each batch."""
    for batch in batches:
        yield "\n".join(map(line, batch.to_pylist()))


def _write_lines(blocks: Iterable[str], out: BinaryIO) -> None:
    for block in blocks:
        text = block.encode() + b"\n"
        out.write(_escaped(text) if out.isatty() else text)


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
