"""For each rule of `verify`: a data directory that breaks it, and what its advice says to do, as code."""

from __future__ import annotations

import shutil
import struct

import corpus
from batches import TRANSACTIONAL, Rec, batch, marker, name
from interop.odd_files import message

import cordwood as cw
from core.advice_case import Case
from core.damage_steps import (
    METADATA,
    STARTS,
    both,
    broker,
    cat_shows_offsets,
    change,
    commit,
    damaged,
    generated,
    golden,
    mark_deleted,
    move_out,
    named_producer,
    nothing,
    open_sparse,
    remove,
    restore,
    restore_file,
    rows,
    run,
    take_back,
    unfinished,
    without_line,
    write,
    write_large,
    written,
)

SMALL = golden("01-small")
ELECTIONS = ("elections-0", golden("19-leader-epochs"))
PAYMENTS = golden("11-transactions")
SNAPSHOT = f"{METADATA}/00000000000000000084-0000000001.checkpoint"
EARLIER = "remove the file: the broker then starts from the snapshot before it"
IDS = b"version=1\ncluster.id=Q29yZHdvb2RDb3JwdXMwMQ\nnode.id=1\ndirectory.id=zO4OUtJ5GLKMkZgwDAkxoA\n"


def in_corpus(code: str, case: str, **fields: object) -> Case:
    """Damage of the corpus, of which the whole partition is beside it."""
    [partition] = [path.name for path in (corpus.GOLDEN / "damaged" / case).glob("*-[0-9]")]
    whole = next(part.path for part in corpus.partitions() if part.name == partition)
    return Case(
        code,
        lambda place: shutil.copytree(whole, place.path),
        damaged(case),
        partition,
        **fields,  # type: ignore[arg-type]
    )


LOST_OFFSETS = "from another replica"
REPEATED = b"".join(batch(n, [Rec(b"%d" % n)]) for n in (*range(6), *range(3, 6)))
CASES = [
    in_corpus("damaged_batch", "flip-record"),
    Case(
        "unsupported_batch",
        generated(rows(0, 3), batch(3, [], codec=5, payload=b"x", count=2, last_offset_delta=1)),
        nothing,
        says="newer version",
        do=nothing,
        stays=True,
        is_deep=True,
    ),
    Case(
        "batch_too_large",
        generated(rows(0, 3)),
        lambda place: write_large(place.path / name(0)),
        says="not damage",
        do=nothing,
        stays=True,
        is_deep=True,
    ),
    in_corpus("torn_tail", "torn-last-byte"),
    in_corpus("zeros_after_end", "zero-tail-page"),
    Case(
        "damaged_records",
        generated(rows(0, 3)),
        write("PARTITION/" + name(0), rows(0, 3) + batch(3, [], payload=b"no record", count=2, last_offset_delta=1)),
        says="from another replica",
        do=both(run("cat", "PATH", "--on-damage", "skip"), restore),
        is_deep=True,
    ),
    Case(
        "undecodable_wrapper",
        generated(message(0, b"first", magic=1)),
        write("PARTITION/" + name(0), message(0, b"first", magic=1) + message(1, None, magic=1, attributes=1)),
        says="from another replica",
        do=both(run("cat", "PATH", "--on-damage", "skip"), run("verify", "PATH", "--as-kafka", "--clean"), restore),
    ),
    Case(
        "offsets_out_of_place",
        generated(batch(0, [Rec(b"a"), Rec(b"b", offset_delta=0)], last_offset_delta=1)),
        nothing,
        says="nothing is lost by a restart",
        do=nothing,
        stays=True,
        is_deep=True,
    ),
    Case(
        "overlapping_batch",
        generated(rows(0, 3) + batch(0, [Rec(b"%d" % n) for n in range(5)])),
        nothing,
        says="nothing is lost by a restart",
        do=nothing,
        stays=True,
    ),
    Case(
        "repeated_batches",
        generated(REPEATED),
        nothing,
        says="stop the broker cleanly, or copy the records",
        do=nothing,
        stays=True,
    ),
    Case(
        "odd_header",
        generated(rows(0, 3, leader_epoch=-2)),
        nothing,
        says="nothing is lost by a restart",
        do=nothing,
        stays=True,
    ),
    Case(
        "wrong_max_timestamp",
        generated(rows(0, 3, max_timestamp=99)),
        nothing,
        says="produce its records again",
        do=nothing,
        stays=True,
        is_deep=True,
    ),
    Case(
        "segment_too_large",
        generated(rows(0, 3)),
        lambda place: open_sparse(place.path / name(0), (1 << 31) + 1),
        says="cordwood copy",
        do=run("copy", "PATH", "COPY"),
        stays=True,
    ),
    Case("offsets_too_far", generated(rows(0, 1), rows(1 << 32, 1)), nothing),
    Case(
        "future_timestamps",
        generated(batch(0, [Rec(b"x", timestamp=32_503_680_000_000)])),
        nothing,
        says="retention by time keeps the segment until then",
        do=nothing,
        stays=True,
    ),
    in_corpus("offset_gap", "segment-removed", says=LOST_OFFSETS, do=restore),
    Case(
        "offset_gap",
        SMALL,
        mark_deleted(96),
        says=f"remove the suffix .deleted from the names of {name(96)}.deleted and the indexes of the same name",
        do=take_back,
        more="deleted",
    ),
    Case(
        "offset_gap",
        generated(batch(0, [Rec(b"%d" % n) for n in range(5)], last_offset_delta=0), rows(5, 1)),
        nothing,
        says="cordwood cat --columns offset shows which offsets the records have",
        do=cat_shows_offsets(*range(6)),
        stays=True,
        more="used",
    ),
    Case(
        "transactions_contradict",
        generated(
            rows(0, 1, producer_id=7, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL),
            rows(1, 1, producer_id=7, producer_epoch=0, base_sequence=1),
            marker(2, 7, commit=True),
        ),
        nothing,
        says="cordwood copy",
        do=run("copy", "PATH", "COPY", "--end-offset", "1"),
        stays=True,
    ),
    in_corpus("index_missing", "index-missing"),
    in_corpus("time_index_missing", "timeindex-missing"),
    in_corpus("index_empty", "index-empty"),
    in_corpus("index_fragment", "index-short"),
    in_corpus("index_zero_tail", "index-zero-padded"),
    in_corpus("index_entry_wrong", "index-wrong-position"),
    Case(
        "index_entry_repeated",
        generated(REPEATED),
        # the second batch, and the second one with offset 4
        write(f"PARTITION/{0:020}.index", struct.pack(">4i", 1, len(REPEATED) // 9, 4, 7 * len(REPEATED) // 9)),
    ),
    in_corpus("time_index_entry_wrong", "timeindex-disorder"),
    Case(
        "time_index_incomplete",
        SMALL,
        lambda place: change(f"PARTITION/{min(place.path.glob('*.timeindex')).name}", lambda text: text[:-12])(place),
    ),
    in_corpus("transaction_index_entry_wrong", "txnindex-garbage"),
    Case(
        "transaction_index_entry_missing",
        PAYMENTS,
        lambda place: change(
            f"PARTITION/{next(path.name for path in sorted(place.path.glob('*.txnindex')) if path.stat().st_size)}",
            lambda text: text[:-34],
        )(place),
        "payments-0",
    ),
    in_corpus("transaction_index_fragment", "txnindex-fragment"),
    in_corpus("orphan_file", "foreign-index"),
    in_corpus("snapshot_unreadable", "snapshot-corrupt"),
    Case(
        "snapshot_wrong",
        PAYMENTS,
        lambda place: shutil.copy(min(place.path.glob("*.snapshot")), max(place.path.glob("*.snapshot"))),
        "payments-0",
    ),
    Case(
        "snapshot_beyond_end",
        PAYMENTS,
        lambda place: remove(f"PARTITION/{place.last_log().stem}.*")(place),
        "payments-0",
        says=LOST_OFFSETS,
        do=restore,
    ),
    in_corpus("snapshot_missing", "snapshots-missing"),
    in_corpus("leader_epochs_unreadable", "epochs-words"),
    in_corpus("leader_epochs_missing", "epochs-empty"),
    Case(
        "leader_epochs_wrong",
        SMALL,
        change("PARTITION/leader-epoch-checkpoint", lambda text: text.replace(b" ", b" 0")),
    ),
    in_corpus("leader_epoch_mismatch", "epochs-beyond-end"),
    Case(
        "checkpoint_unreadable",
        broker,
        write(STARTS, bytes(20)),
        "cities-1",
        says="write it again: a line 0, a line with the number of the lines after it",
        do=write(STARTS, b"0\n1\ncities 1 31\n"),
        more="log start offsets",
    ),
    *(
        Case(
            "checkpoint_unreadable", broker, write(file, bytes(20)), says="remove the file", do=remove(file), more=file
        )
        for file in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", "cleaner-offset-checkpoint")
    ),
    Case(
        "checkpoint_offset_negative",
        broker,
        write(STARTS, b"0\n2\ncities 1 31\ncities 0 -5\n"),
        "cities-0",
        says="remove the partition's line, and lower the count",
        do=without_line(STARTS, "cities 0"),
    ),
    *(
        Case(
            code,
            broker,
            lambda place: remove(f"PARTITION/{place.last_log().stem}.*")(place),
            "cities-0",
            says=LOST_OFFSETS,
            do=restore,
        )
        for code in ("recovery_point_beyond_end", "high_watermark_beyond_end")
    ),
    Case(
        "log_start_beyond_end",
        broker,
        write(STARTS, b"0\n2\ncities 1 31\ncities 0 9999\n"),
        "cities-0",
        says="remove the partition's line in log-start-offset-checkpoint, and lower the count",
        do=without_line(STARTS, "cities 0"),
    ),
    Case(
        "partition_metadata_unreadable",
        broker,
        write("cities-0/partition.metadata", b"version: 0\ntopic_id: x"),
        says=LOST_OFFSETS,
        do=restore_file("cities-0/partition.metadata"),
    ),
    Case(
        "partition_metadata_missing",
        broker,
        remove("cities-0/partition.metadata"),
        says=LOST_OFFSETS,
        do=restore_file("cities-0/partition.metadata"),
    ),
    Case(
        "topic_id_mismatch",
        broker,
        write("cities-0/partition.metadata", b"version: 0\ntopic_id: BAAAAAAAAAAAAAAAAAAAAQ"),
        says="restore partition.metadata from another replica",
        do=restore_file("cities-0/partition.metadata"),
    ),
    Case(
        "stray_partition",
        broker,
        lambda place: shutil.copytree(place.data / "cities-0", place.data / "cities-7"),
        says="move the directory out of the data directory before a broker starts",
        do=move_out("cities-7"),
    ),
    Case(
        "partition_missing",
        broker,
        lambda place: shutil.rmtree(place.data / "cities-1"),
        "cities-1",
        says="restore the directory from a copy before a broker starts",
        do=lambda place: shutil.copytree(place.replica / "cities-1", place.data / "cities-1"),
    ),
    Case(
        "duplicate_directory",
        broker,
        lambda place: shutil.copytree(place.data / "cities-0", place.data / "cities-00"),
        says="move all but one of them out of the data directory",
        do=move_out("cities-00"),
    ),
    Case(
        "meta_properties_unreadable",
        broker,
        write("meta.properties", b""),
        says="version=1, and the broker's cluster.id, node.id and the directory.id",
        do=write("meta.properties", IDS),
    ),
    Case(
        "quorum_state_unreadable",
        broker,
        write(f"{METADATA}/quorum-state", b""),
        says="of a controller that is alone, remove the file",
        do=remove(f"{METADATA}/quorum-state"),
    ),
    Case("metadata_snapshot_damaged", broker, write(SNAPSHOT, b""), says=EARLIER, do=remove(SNAPSHOT)),
    Case(
        "metadata_record_unreadable",
        broker,
        change(f"{METADATA}/{name(0)}", lambda log: log + rows(98, 1, leader_epoch=1)),
        says="restore the directory from a copy",
        do=restore_file(METADATA),
    ),
    Case(
        "metadata_snapshot_damaged",
        broker,
        write("bootstrap.checkpoint", b""),
        says="remove the file: the broker has its metadata in __cluster_metadata-0",
        do=remove("bootstrap.checkpoint"),
        more="bootstrap",
    ),
    Case(
        "cluster_metadata_missing",
        broker,
        remove(METADATA),
        says="restore the directory from a copy",
        do=restore_file(METADATA),
    ),
    Case("writer_file_unreadable", written, write("PARTITION/.cordwood.durable", b"x")),
    Case(
        "position_unreadable",
        both(written, lambda place: commit(place.path)),
        write("PARTITION/.cordwood.positions/billing", b"x"),
        says="commit the consumer's offset again",
        do=lambda place: commit(place.path),
    ),
    Case(
        "producer_names_unreadable",
        lambda place: named_producer(place.path),
        change("PARTITION/.cordwood.producers", lambda text: text[:-1]),
        says="remove the file",
        do=remove("PARTITION/.cordwood.producers"),
    ),
    Case(
        "lost_end",
        written,
        lambda place: remove(f"PARTITION/{place.last_log().stem}.*")(place),
        says="restore the records after the log end from a copy",
        do=restore,
    ),
    Case(
        "not_as_closed",
        written,
        lambda place: remove(f"PARTITION/{sorted(place.path.glob('*.log'))[1].stem}.*")(place),
        says="restore the segment from a copy",
        do=restore,
    ),
    Case("lost_start", SMALL, remove(f"PARTITION/{name(0, '')}.*"), says="restore the first segments", do=restore),
    Case(
        "lost_start",
        SMALL,
        remove(f"PARTITION/{name(0, '')}.*"),
        says="continue without them: cordwood repair with --policy salvage",
        do=run("repair", "PATH", "--policy", "salvage", "--apply"),
        more="salvage",
        starts={"tickets-0": 96},
    ),
    Case(
        "lost_start",
        SMALL,
        remove(f"PARTITION/{name(0, '')}.*"),
        says="of a topic with remote.storage.enable=true, nothing",
        do=nothing,
        stays=True,
        more="remote",
        starts={"tickets-0": 96},
    ),
    Case(
        "lost_start",
        SMALL,
        mark_deleted(0),
        says="otherwise remove the suffix .deleted from the names of their files",
        do=take_back,
        more="deleted",
    ),
    Case(
        "lost_start",
        SMALL,
        both(mark_deleted(0), lambda place: cw.LogWriter(place.path).close()),
        says="then .cordwood.checkpoint, .cordwood.clean and the partition's line in log-start-offset-checkpoint",
        do=both(take_back, remove("PARTITION/.cordwood.checkpoint"), remove("PARTITION/.cordwood.clean")),
        more="deleted, and opened by a writer",
    ),
    Case(
        "remote_start",
        both(broker, remove(f"cities-0/{name(0, '')}.*"), write(STARTS, b"0\n2\ncities 1 31\ncities 0 0\n")),
        nothing,
        says="nothing: its start is in remote storage",
        do=nothing,
        stays=True,
    ),
    Case("truncation_interrupted", written, write("PARTITION/.cordwood.truncations", b"x")),
    Case(
        "quarantined",
        SMALL,
        both(change(f"PARTITION/{name(0, '.timeindex')}", lambda text: text[:-12]), run("reindex", "PATH", "--yes")),
        says="look at the bytes, then remove the directory",
        do=remove("PARTITION/quarantine"),
    ),
    in_corpus("replacement_committed", "swap-complete"),
    in_corpus("replacement_uncommitted", "cleaned-leftover"),
    Case(
        "unfinished_copy",
        SMALL,
        unfinished,
        says="run the copy again, which continues it",
        do=lambda place: cw.copy(place.path, place.data / "copied-0"),
    ),
    in_corpus("deleted_file", "deleted-leftover", do=nothing, stays=True),
    in_corpus("foreign_file", "foreign-harmless", do=nothing, stays=True),
    in_corpus("foreign_segment_name", "foreign-log", says="move it out", do=move_out("PARTITION/notes.log")),
    Case(
        "not_a_file",
        SMALL,
        lambda place: (place.path / name(999)).mkdir(),
        says="move it out",
        do=move_out(f"PARTITION/{name(999)}"),
    ),
    Case(
        "foreign_directory",
        broker,
        lambda place: (place.data / "backup").mkdir(),
        says="move it out of the data directory",
        do=move_out("backup"),
    ),
    Case(
        "load_fails",
        broker,
        lambda place: change(f"cities-0/{place.last_log().name}", lambda text: text + bytes(4096))(place),
        "cities-0",
    ),
    Case(
        "findings_left_out",
        generated(*(rows(n, 1) if n % 2 else rows(n, 1)[:-1] + b"x" for n in range(2100))),
        nothing,
        do=nothing,
        stays=True,
    ),
    Case("no_segment", SMALL, remove("PARTITION/*.log"), says="restore the segments", do=restore),
    Case(
        "unreadable",
        SMALL,
        both(
            remove(f"PARTITION/{name(0, '.timeindex')}"),
            lambda place: (place.path / name(0, ".timeindex")).symlink_to(place.replica),
        ),
        says="check the disk",
        do=restore,
    ),
]
