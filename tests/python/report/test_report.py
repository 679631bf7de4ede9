"""The report: what the page says, and how a browser shows it."""

import functools
import io
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import corpus
import pytest
from scripts import Command

import cordwood as cw

pytest.importorskip("matplotlib")
from PIL import Image

from cordwood.report import Report
from cordwood.report.panels import PANELS

CASES = ["01-plain", "08-late", "08-no-timestamps", "11-transactions", "12-compacted", "15-empty", "17-v0-gzip"]


def partition(case: str) -> Path:
    return next(part for part in corpus.partitions() if part.case == case).path


@functools.cache
def page_of(case: str) -> str:
    return Report(partition(case)).to_html()


def facts(page: str) -> dict[str, str]:
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page))


def pictures(page: str) -> list[ET.Element]:
    return [ET.fromstring(svg) for svg in re.findall(r"<svg .*?</svg>", page, flags=re.DOTALL)]  # noqa: S314  (ours)


# each takes a second or two
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.long if case not in CASES[::3] else ()) for case in CASES]
)
def test_the_page_has_every_picture_or_says_why_there_is_none(case: str) -> None:
    page = page_of(case)
    for panel in PANELS:
        figure = re.search(rf'<figure id="{panel.name}".*?</figure>', page, flags=re.DOTALL)
        assert figure is not None
        assert ("<svg" in figure[0]) != (re.search(r"</h2><p>[A-Z].*\.</p>", figure[0]) is not None), panel.name
    assert all(picture.tag.endswith("svg") for picture in pictures(page))


@pytest.mark.long
def test_the_page_needs_no_other_file_and_is_the_same_each_time() -> None:
    page = page_of("01-plain")
    assert page == Report(partition("01-plain")).to_html()
    links = re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]+)""", page)
    assert [link for link in links if not link.startswith("#")] == []
    names = re.findall(r'<clipPath id="(\w+)"', page)
    assert len(names) == len(set(names))


@pytest.mark.long
def test_the_facts_are_those_of_a_scan() -> None:
    for case in CASES:
        path = partition(case)
        log = cw.Log(path)
        table = log.scan().to_arrow()
        shown = facts(page_of(case))
        assert shown["records"] == f"{table.num_rows:,}", case
        assert shown["offsets"] == f"{log.log_start_offset:,} to {log.log_end_offset:,}"
        assert shown["segments"] == str(len(log.segments))
        assert shown["tombstones"] == f"{table['value'].null_count:,}"
        assert shown["records without a key"] == f"{table['key'].null_count:,}"
        times = [time for time in table["timestamp"].cast("int64").to_pylist() if time is not None]
        late = sum(time < max(times[: place + 1]) for place, time in enumerate(times))
        assert shown["records out of order"] == f"{late:,}", case


def test_damage_is_the_first_thing_on_the_page() -> None:
    page = Report(corpus.GOLDEN / "damaged/flip-record/tickets-0").to_html()
    assert "1 range of the log cannot be read." in page
    assert page.index("cannot be read") < page.index("<dl>")
    assert "Every batch could be read" in page_of("01-plain")


@pytest.mark.long
def test_records_with_a_wrong_time_leave_room_for_the_others(tmp_path: Path) -> None:
    path = tmp_path / "clocks-0"
    with cw.LogWriter(path) as writer:
        writer.append_many([cw.Record(value=b"v", timestamp=1_700_000_000_000 + 10 * n) for n in range(5000)])
        writer.append(b"v", timestamp=1000)
    page = Report(path).to_html()
    assert "1 record outside the shown times" in page
    assert "2023-Nov" in page
    assert facts(page)["first time"] == "1970-01-01T00:00:01.000Z"


def test_names_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "<script>alert(1)<&script>-0"
    shutil.copytree(partition("01-small"), path)
    page = Report(path).to_html()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page


@pytest.mark.long
def test_reading_for_a_report_writes_nothing_to_the_partition(copied: Callable[[Path], Path]) -> None:
    path = copied(partition("01-plain"))
    before = {file: file.stat().st_mtime_ns for file in path.iterdir()}
    Report(path).to_html()
    assert {file: file.stat().st_mtime_ns for file in path.iterdir()} == before


@pytest.mark.parametrize(
    ("name", "start"),
    [
        pytest.param("r.png", b"\x89PNG", marks=pytest.mark.long),
        pytest.param("r.svg", b"<?xml", marks=pytest.mark.long),
        ("r.html", b"<!DOCTYPE html>"),
    ],
)
def test_the_command_writes_the_format_of_the_suffix(command: Command, tmp_path: Path, name: str, start: bytes) -> None:
    target = tmp_path / name
    path = partition("11-transactions")
    what = "a page" if name.endswith("html") else "the pictures"
    assert command("report", path, "-o", target) == (0, f"{path}: wrote {what} to {target}\n", "")
    assert target.read_bytes().startswith(start)


@pytest.mark.long
def test_the_image_has_all_pictures() -> None:
    image = Report(partition("11-transactions")).to_image("svg").decode()
    for panel in PANELS:
        assert panel.title in image
    with Image.open(io.BytesIO(Report(partition("15-empty")).to_image("png"))) as picture:
        assert min(picture.size) > 1000


def test_wrong_usage_is_named(command: Command, tmp_path: Path) -> None:
    code, _, said = command("report", partition("01-small"), "-o", tmp_path / "r.pdf")
    assert (code, "-o: expected a file with the suffix .html" in said, (tmp_path / "r.pdf").exists()) == (
        2,
        True,
        False,
    )
    code, _, said = command("report", partition("01-small"), "-o", tmp_path / "r.png", "--format", "svg")
    assert (code, "has the suffix of png, but --format is svg" in said, (tmp_path / "r.png").exists()) == (
        2,
        True,
        False,
    )
    code, _, said = command("report", tmp_path)
    assert code == 1
    assert "no segment" in said or "without a segment" in said


MEASURE = """
<script>
const found = [];
for (const figure of document.querySelectorAll("figure")) {
  const svg = figure.querySelector("svg");
  const frame = svg ? svg.getBoundingClientRect() : null;
  const inside = (box) => box.left >= frame.left - 1 && box.right <= frame.right + 1
      && box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1;
  const texts = svg ? [...svg.querySelectorAll("text")] : [];
  found.push({
    name: figure.id, wide: frame ? frame.width : 0, high: frame ? frame.height : 0, texts: texts.length,
    outside: texts.filter((text) => !inside(text.getBoundingClientRect())).map((text) => text.textContent),
  });
}
const scrolls = document.documentElement.scrollWidth > document.documentElement.clientWidth;
document.body.innerHTML = "<pre id=measured></pre>";
document.getElementById("measured").textContent = JSON.stringify({ figures: found, scrolls });
</script>
"""


def browse(page: Path, *options: str) -> bytes:
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("needs chromium, which is not installed")
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1100,2600"]
    # no request for another file can succeed
    arguments.append("--host-resolver-rules=MAP * ~NOTFOUND")
    profile = f"--user-data-dir={page.parent / 'browser'}"
    done = subprocess.run(
        [browser, *arguments, profile, *options, page.as_uri()], capture_output=True, check=True, timeout=120
    )
    return done.stdout


def test_a_browser_shows_every_picture_with_its_text_inside(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(page_of("11-transactions").replace("</body>", f"{MEASURE}</body>"))
    shown = browse(page, "--dump-dom").decode()
    match = re.search(r'<pre id="measured">(.*?)</pre>', shown)
    assert match is not None
    measured = json.loads(match[1].replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))
    assert not measured["scrolls"]
    assert [figure["name"] for figure in measured["figures"]] == [panel.name for panel in PANELS]
    drawn = [figure for figure in measured["figures"] if figure["wide"]]
    assert len(drawn) == len(PANELS) - 1, "all but the picture of late records, of which there are none"
    for figure in drawn:
        assert figure["wide"] > 400
        assert figure["high"] > 200
        assert figure["texts"] > 2
        assert figure["outside"] == [], figure["name"]


@pytest.mark.long
def test_a_picture_of_the_page_has_the_colours_of_what_it_shows(tmp_path: Path) -> None:
    page, picture = tmp_path / "page.html", tmp_path / "page.png"
    page.write_text(page_of("11-transactions"))
    browse(page, f"--screenshot={picture}")
    with Image.open(picture) as image:
        counts = {colour: count for count, colour in image.convert("RGB").getcolors(1 << 24) or []}
    for name, colour in {"segments": (0, 114, 178), "aborted": (230, 159, 0), "open": (204, 121, 167)}.items():
        assert counts.get(colour, 0) > 200, name
    assert (213, 94, 0) not in counts, "nothing is damaged"
