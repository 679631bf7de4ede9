"""A process that changes a log at random and prints every call, until the power fails."""

from __future__ import annotations

# Reads the log, opens it for writing, and then changes it at random until the process ends. Every call is
# printed before it and after it, as one line. The number of a value is unique.
WRITER = """
import json, os, random, sys
import cordwood as cw

path, flush, seed, number = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
choose = random.Random(seed)
sizes = {"segment_bytes": 16384, "index_interval_bytes": 512, "segment_index_bytes": 4096, "retention_bytes": 60000}
config = cw.LogConfig(**sizes, retention_ms=-1)
modes = {"group": cw.FlushMode.group(ms=1), "interval": cw.FlushMode.interval(messages=7)}

WEIGHTS = {"append": 60, "flush": 6, "roll": 6, "truncate_to": 4, "delete_before": 3, "apply_retention": 4,
           "restart": 1, "close": 2}

def say(*what):
    os.write(1, json.dumps(what).encode() + b"\\n")

def contents(log, on_damage="raise"):
    found = []
    for record in log.records(on_damage=on_damage):
        name, size, rest = record.value.split(b"/", 2)
        assert rest == b"x" * int(size), (record.offset, record.value)
        found.append([record.offset, int(name)])
    return {"start": log.log_start_offset, "end": log.log_end_offset, "records": found}

def value():
    global number
    number += 1
    size = choose.choice([0, 10, 300, 2000])
    return b"%d/%d/" % (number, size) + b"x" * size

def state():
    return {"start": writer.log_start_offset, "end": writer.log_end_offset, "durable": writer.durable_offset}

say("opening")
try:
    # before the recovery
    say("read", contents(cw.Log(path), on_damage="skip")["records"])
except cw.LogNotFoundError:
    say("read", [])
writer = cw.LogWriter(path, config=config, flush=modes.get(flush, flush))
say("opened", {**contents(writer.reader()), "durable": writer.durable_offset})

while True:
    start, end = writer.log_start_offset, writer.log_end_offset
    call = choose.choices(list(WEIGHTS), WEIGHTS.values())[0]
    if call == "append":
        count = choose.choice([1, 1, 1, 3])
        first = number
        values = [value() for _ in range(count)]
        say("call", call, {"numbers": list(range(first + 1, number + 1))})
        writer.append(values[0]) if count == 1 else writer.append_many(values)
    elif call == "close":
        say("call", call, {})
        writer.close()
        writer = cw.LogWriter(path, config=config, flush=modes.get(flush, flush))
    elif call == "restart":
        offset = end + choose.choice([0, 5])
        say("call", call, {"offset": offset})
        writer.truncate_fully_and_start_at(offset)
    elif call in ("truncate_to", "delete_before"):
        offset = choose.randint(max(start, end - 12), end) if call == "truncate_to" else choose.randint(start, end)
        say("call", call, {"offset": offset})
        getattr(writer, call)(offset)
    else:
        say("call", call, {})
        getattr(writer, call)()
    say("returned", state())
"""
