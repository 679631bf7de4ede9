"""`cordwood dump`: the contents of a partition's files, as `kafka-dump-log` prints them."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from cordwood import ConfigError, Dump
from cordwood import dump as dump_of
from cordwood.cli.exit_codes import FAILED, UsageError, say, sentence
from cordwood.cli.output import output_of
from cordwood.cli.path import parse_path
from cordwood.cli.progress import counted
from cordwood.cli.terminal import escape

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
