"""The report as one HTML page without any other file: pictures are SVG in the page."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from io import StringIO
from pathlib import Path

from matplotlib.figure import Figure

from cordwood import __version__
from cordwood._core import _offsets_in_words
from cordwood.quantities import bytes_in_words, several
from cordwood.report.axes import style
from cordwood.report.panels import PANELS, Panel
from cordwood.report.subject import Subject
from cordwood.times import in_words

__all__ = ["page"]

_WIDE, _NARROW, _HEIGHT = 9.4, 4.6, 2.5
"""Inches."""
_MAX_ROWS = 100

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 1.5rem;
  color: #1b1f24; background: #fff; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 2rem 0 0.3rem; }
p.path, figcaption, footer { color: #5b6470; margin: 0.2rem 0; font-size: 0.9rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: 0.6rem; margin: 1.2rem 0; }
dl div { border: 1px solid #d9dde3; border-radius: 6px; padding: 0.5rem 0.8rem; }
dt { color: #5b6470; font-size: 0.8rem; }
dd { margin: 0; font-size: 1.05rem; font-variant-numeric: tabular-nums; }
main { display: grid; grid-template-columns: 1fr 1fr; gap: 0 1.5rem; }
figure { margin: 0; min-width: 0; }
figure.wide { grid-column: 1 / 3; }
figure svg { width: 100%; height: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0.25rem 0.8rem 0.25rem 0; border-bottom: 1px solid #e6e9ee;
  vertical-align: top; overflow-wrap: anywhere; }
.bad { border-left: 4px solid #d55e00; padding-left: 0.8rem; }
.good { border-left: 4px solid #009e73; padding-left: 0.8rem; }
@media (max-width: 50rem) { main { grid-template-columns: 1fr; } figure.wide { grid-column: 1; } }
"""


def page(subject: Subject, name: str) -> str:
    """Return the page; `name` is its title."""
    parts = [
        f"<h1>{escape(name)}</h1><p class=path>{escape(subject.path)}</p>",
        _health(subject),
        _facts(subject),
        f"<main>{''.join(_figure(panel, subject) for panel in PANELS)}</main>",
        _segments(subject),
        _open_transactions(subject),
        f"<footer>cordwood {__version__}. Times are UTC. Nothing was written to the directory.</footer>",
    ]
    head = (
        f'<meta charset="utf-8"><title>{escape(name)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
    )
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _health(subject: Subject) -> str:
    damaged = subject.profile["damaged_ranges"]
    warnings = "".join(f"<li>{escape(warning)}</li>" for warning in subject.warnings)
    notes = f"<ul>{warnings}</ul>" if warnings else ""
    if not damaged and subject.profile["batches"] == 0:
        return f"<p class=good>The log has no records.</p>{notes}"
    if not damaged:
        return f"<p class=good>Every batch could be read, and its checksum is right.</p>{notes}"
    rows = [
        [
            Path(entry["file"]).name,
            f"{entry['start_position']:,} to {entry['end_position']:,}",
            _offsets_in_words(entry["start_offset"], entry["end_offset"]),
            entry["reason"],
        ]
        for entry in damaged
    ]
    sentence = f"{several(len(damaged), 'range')} of the log cannot be read."
    table = _table("", ["file", "bytes", "offsets", "reason"], rows)
    return f"<p class=bad>{sentence} <code>cordwood verify</code> checks every file.</p>{table}{notes}"


def _facts(subject: Subject) -> str:
    profile = subject.profile
    times = subject.time_range
    keys, lower, upper = profile["distinct_keys"]
    is_exact = lower == upper
    transactions = profile["committed"] + profile["aborted"] + len(profile["open_transactions"])
    facts = {
        "offsets": f"{profile['log_start_offset']:,} to {profile['log_end_offset']:,}",
        "records": f"{profile['records']:,}",
        "batches": f"{profile['batches']:,}",
        "segments": f"{len(profile['segments']):,}",
        "first time": "none" if times is None else in_words(times[0]),
        "last time": "none" if times is None else in_words(times[1]),
        "bytes on disk": bytes_in_words(sum(subject.file_bytes.values())),
        "different keys": f"{keys:,}" if is_exact else f"about {keys:,} ({lower:,} to {upper:,})",
        "records without a key": f"{profile['null_keys']:,}",
        "tombstones": f"{profile['tombstones']:,}",
        "records out of order": f"{profile['late_records']:,}",
        "missing offsets": f"{profile['gap_offsets']:,} in {several(profile['gap_count'], 'gap')}",
    }
    if subject.time_unit is not None:
        facts["unit of the timestamps"] = f"{subject.time_unit}, although Kafka's are milliseconds; shown as times"
    if transactions:
        facts["transactions"] = (
            f"{profile['committed']:,} committed, {profile['aborted']:,} aborted, "
            f"{len(profile['open_transactions']):,} open"
        )
        if profile["damaged_ranges"]:
            # the records of a transaction whose marker is damaged count for the producer's next one
            facts["transactions"] += "; damage may hide markers"
    entries = (f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    return f"<dl>{''.join(entries)}</dl>"


def _figure(panel: Panel, subject: Subject) -> str:
    with style(panel.name):
        figure = Figure(figsize=(_WIDE if panel.is_wide else _NARROW, _HEIGHT), layout="constrained")
        nothing = panel.draw(figure.subplots(), subject)
        out = StringIO()
        if nothing is None:
            figure.savefig(out, format="svg", metadata=dict.fromkeys(["Creator", "Date", "Format", "Type"]))
    if nothing is None:
        # without the declarations of a file of its own
        svg = re.sub(r"^.*?(?=<svg)", "", out.getvalue(), count=1, flags=re.DOTALL)
        picture = svg.replace("<svg", f'<svg role="img" aria-label="{escape(panel.title)}"', 1)
    else:
        picture = f"<p>{escape(nothing)}</p>"
    css_class = ' class="wide"' if panel.is_wide else ""
    title, caption = escape(panel.title), escape(panel.caption)
    return f'<figure id="{panel.name}"{css_class}><h2>{title}</h2>{picture}<figcaption>{caption}</figcaption></figure>'


def _segments(subject: Subject) -> str:
    rows = []
    for segment in subject.profile["segments"]:
        times = segment["time_range"]
        rows.append([
            f"{segment['base_offset']:,}",
            f"{segment['end_offset']:,}",
            f"{segment['records']:,}",
            bytes_in_words(segment["bytes"]),
            "none" if times is None else in_words(times[0]),
            "none" if times is None else in_words(times[1]),
        ])  # fmt: skip
    return _table(
        "Segments", ["base offset", "end offset", "records", "batches, bytes", "first time", "last time"], rows
    )


def _open_transactions(subject: Subject) -> str:
    rows = [
        [
            f"{entry['producer_id']}",
            f"{entry['producer_epoch']}",
            f"{entry['first_offset']:,}",
            f"{entry['records']:,}",
            in_words(entry["last_timestamp"]),
        ]
        for entry in subject.profile["open_transactions"]
    ]
    headings = ["producer id", "epoch", "first offset", "records", "last time"]
    return _table("Open transactions", headings, rows) if rows else ""


def _table(title: str, headings: Sequence[str], rows: Sequence[Iterable[str]]) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows[:_MAX_ROWS])
    more = f"<p class=path>and {len(rows) - _MAX_ROWS:,} more</p>" if len(rows) > _MAX_ROWS else ""
    heading = f"<h2>{escape(title)}</h2>" if title else ""
    return f"{heading}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
