"""An incident, told in eight commands: a broker's disk is full, and one of its partitions is damaged."""

import io
import shutil
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import cordwood as cw
from cordwood.cli import main as cordwood
from demo_steps import GOLDEN, Say, expect, step

INTACT = GOLDEN / "01-small" / "tickets-0"
DAMAGED = GOLDEN / "damaged" / "flip-record-first-segment" / "tickets-0"
LARGEST = GOLDEN / "16-data-dir"
MAX_LINES, MAX_WIDTH = 14, 160


def run(say: Say, folder: Path, *arguments: object) -> tuple[int, str]:
    """Run a command and show it with its output, shortened."""
    words = [str(argument) for argument in arguments]
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = cordwood(words)
        out.flush()
    text = out.buffer.getvalue().decode() + err.getvalue()
    say("$ cordwood " + " ".join(words).replace(f"{folder}/", "").replace(str(folder), "."))
    lines = text.replace(f"{folder}/", "").splitlines()
    for line in lines[:MAX_LINES]:
        say(f"  {line.rstrip()[:MAX_WIDTH]}")
    if len(lines) > MAX_LINES:
        say(f"  … {len(lines) - MAX_LINES} more lines")
    return code, text


def tell(folder: Path) -> None:
    """Run the eight commands, and check what each of them finds."""
    data = folder / "kafka"
    # without the metadata of the cluster, which does not have the topic
    shutil.copytree(LARGEST, data, ignore=shutil.ignore_patterns("expected", "__cluster_metadata-0"))
    partition = data / "tickets-0"
    shutil.copytree(DAMAGED, partition)
    intact = cw.Log(INTACT).scan(columns=["offset"]).to_arrow().num_rows
    with step("An incident: which topics fill the disk") as say:
        expect("exit code", run(say, folder, "ls", data, "--sort", "size")[0], 0)
    with step("An incident: is it corrupt") as say:
        code, text = run(say, folder, "verify", partition)
        expect("exit code and finding", (code, "00000000000000000000.log" in text), (1, True))
    with step("An incident: what would a broker do with it") as say:
        run(say, folder, "verify", "--as-kafka", "--unclean", partition)
    with step("An incident: what would cordwood's own recovery do") as say:
        run(say, folder, "recover", partition)
    with step("An incident: keep a copy of everything that is intact") as say:
        expect("exit code", run(say, folder, "copy", partition, folder / "saved-0", "--on-damage", "skip")[0], 1)
    with step("An incident: what can be saved in place, as a plan") as say:
        expect("exit code", run(say, folder, "repair", partition, "--policy", "salvage")[0], 1)
    with step("An incident: mend it") as say:
        expect("exit code", run(say, folder, "repair", partition, "--policy", "salvage", "--apply")[0], 0)
        left = cw.Log(partition).scan(columns=["offset"]).to_arrow().num_rows
        say(f"{left} of {intact} records are there; the damaged bytes are in quarantine/")
        expect("some records are lost, and few", 0 < intact - left < 10, True)
    with step("An incident: look at the result") as say:
        expect("exit code", run(say, folder, "report", partition, "-o", folder / "report.html")[0], 0)
        expect("verified", run(say, folder, "verify", partition)[0], 0)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        tell(Path(folder))


if __name__ == "__main__":
    main()
    sys.exit(0)
