"""For each rule of `verify` about the files of a broker: a data directory that breaks it, and its advice as code."""

from __future__ import annotations

import shutil

from batches import name

import cordwood as cw
from core.advice_case import LOST_OFFSETS, Case
from core.damage_steps import (
    METADATA,
    STARTS,
    both,
    broker,
    change,
    move_out,
    remove,
    restore,
    restore_file,
    rows,
    run,
    without_line,
    write,
    written,
)

SNAPSHOT = f"{METADATA}/00000000000000000084-0000000001.checkpoint"
EARLIER = "remove the file: the broker then starts from the snapshot before it"
IDS = b"version=1\ncluster.id=Q29yZHdvb2RDb3JwdXMwMQ\nnode.id=1\ndirectory.id=zO4OUtJ5GLKMkZgwDAkxoA\n"


CASES_OF_BROKER_FILES = [
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
        "recovery_point_beyond_end",
        broker,
        lambda place: remove(f"PARTITION/{place.last_log().stem}.*")(place),
        "cities-0",
        says="continue without them: cordwood repair with --policy salvage",
        do=both(
            run("repair", "PATH", "--policy", "salvage", "--apply"),
            lambda place: cw.LogWriter(place.path, config=cw.LogConfig(retention_ms=-1)).close(),
        ),
        more="salvage",
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
]
