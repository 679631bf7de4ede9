"""The processes of a soak: a writer that is killed again and again, and followers.

A value has its own offset, so that a record in a wrong place is detected, and a serial number, one higher for each
record that was ever appended. Serial number minus offset therefore changes only where a truncation, or the end of a
process, has removed records. The list of these changes describes a whole log.

Appends and truncations are of whole batches, so that the place of a record in its batch is the remainder of its offset.
One record of ten has a key that each batch has, the others have keys of their own: a compaction removes records of the
first kind alone.
"""

from __future__ import annotations

WRITER = """
import json, os, random, struct, sys
import cordwood as cw

path, seed, serial, total = sys.argv[1], *map(int, sys.argv[2:])
choose = random.Random(seed)
BATCH = 1000
config = cw.LogConfig(
    segment_bytes=8 << 20, retention_bytes=256 << 20, retention_ms=-1,
    cleanup_policy="compact,delete", min_cleanable_dirty_ratio=0.01,
)
writer = cw.LogWriter(path, config=config, flush=cw.FlushMode.group(ms=2))

def say(*what):
    os.write(1, json.dumps(what).encode() + b"\\n")

last = list(writer.reader().records(start_offset=max(writer.log_start_offset, writer.log_end_offset - 1)))
found = struct.unpack(">qq", last[0].value[:16]) if last else (None, serial - 1)
say("opened", writer.log_end_offset, found[1])
# a batch whose append did not return may be in the log: its serial numbers are used
serial = max(serial, found[1] + 1)
pad = b"x" * 24

def compact():
    say("compacted", sum(part.records_before - part.records_after for part in writer.compact().segments))

def record(offset, serial):
    key = b"repeated %d" % (offset % BATCH) if offset % 10 == 5 else b"%d" % serial
    return cw.Record(struct.pack(">qq", offset, serial) + pad, key=key)

while serial < total:
    end = writer.log_end_offset
    say("append", end, serial)
    appended = writer.append_many([record(end + n, serial + n) for n in range(BATCH)])
    assert (appended.first_offset, appended.last_offset, appended.durable) == (end, end + BATCH - 1, True)
    serial += BATCH
    say("appended", end, serial)
    if choose.random() < 0.02:
        writer.roll()
    if choose.random() < 0.02:
        writer.apply_retention()
    if choose.random() < 0.005:
        compact()
    if choose.random() < 0.004:
        offset = max(writer.log_start_offset, writer.log_end_offset - BATCH * choose.randint(1, 5))
        say("truncate", offset)
        writer.truncate_to(offset)
        say("truncated", offset)
if serial == total:
    writer.append(struct.pack(">qq", writer.log_end_offset, total), key=b"last")
writer.roll()
compact()
say("end", writer.log_end_offset - 1)
writer.close()
"""

# Follows the log until the record with the last serial number, and prints where serial number minus offset
# changes.
FOLLOWER = """
import json, os, struct, sys
import cordwood as cw

path, total = sys.argv[1], int(sys.argv[2])
# of offsets below which no truncation reaches
BACK = 10_000
changes, deleted, expected = [], 0, 0

def resources():
    pages = int(open("/proc/self/statm").read().split()[1])
    return {"bytes": pages * os.sysconf("SC_PAGE_SIZE"), "files": len(os.listdir("/proc/self/fd"))}

def follow(records):
    global expected
    for record in records:
        offset, serial = struct.unpack(">qq", record.value[:16])
        assert offset == record.offset >= expected, (offset, record.offset, expected)
        for missing in range(expected, offset):
            assert missing % 10 == 5, (missing, offset)
        if not changes or changes[-1][1] != serial - offset:
            assert not changes or changes[-1][1] < serial - offset, (changes[-1], offset, serial)
            changes.append([offset, serial - offset])
        expected = offset + 1
        if serial == total:
            return True
        if offset % 1_000_000 == 500_000:
            used.append(resources())
    raise AssertionError("the iteration has ended")

used, is_done = [], False
while not is_done:
    try:
        # the log may also be truncated between these lines
        log = cw.Log(path)
        expected = min(max(log.log_start_offset, expected), log.log_end_offset)
        while changes and changes[-1][0] >= expected:
            changes.pop()
        is_done = follow(log.follow(expected))
    except cw.LogChangedError:
        expected = max(expected - BACK, 0)
    except cw.OffsetOutOfRangeError as error:
        deleted += max(error.log_start_offset - expected, 0)
used.append(resources())
print(json.dumps({"changes": changes, "deleted": deleted, "end": expected, "used": used}))
"""
