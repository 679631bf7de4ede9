"""`Report`."""

import os
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Literal

from matplotlib.figure import Figure

from cordwood import Log
from cordwood.report.axes import style
from cordwood.report.page import page
from cordwood.report.panels import PANELS, Panel
from cordwood.report.subject import subject_of

__all__ = ["Report"]

_WIDTH, _ROW_HEIGHT, _DPI = 12.0, 2.7, 130
"""Inches, and dots for each."""


class Report:
    """A report of one partition directory. It shows the log as it was when the report was created.

    *Cost*: reads every record once. *Memory*: does not grow with the log.
    """

    def __init__(
        self, source: str | os.PathLike[str] | Log, *, on_progress: Callable[[int], None] = lambda _: None
    ) -> None:
        """Read a partition directory, or an open log. *on_progress* is called with the bytes that were read so far.

        *Errors*: as for `Log`. Damage is not an error, but a part of the report.
        """
        log = source if isinstance(source, Log) else Log(source)
        self._subject = subject_of(log, on_progress)
        self._name = Path(log.path).name

    def to_html(self) -> str:
        """Return one HTML page, which needs no other file and no network."""
        return page(self._subject, self._name)

    def to_image(self, image_format: Literal["png", "svg"]) -> bytes:
        """Return all pictures of the page as one image."""
        with style("report"):
            rows = _rows(PANELS)
            figure = Figure(figsize=(_WIDTH, _ROW_HEIGHT * len(rows)), layout="constrained")
            figure.suptitle(self._name, fontsize=14, fontweight="bold")
            mosaic = figure.subplot_mosaic([[panel.name for panel in row] for row in rows])
            for panel in PANELS:
                axes = mosaic[panel.name]
                nothing = panel.draw(axes, self._subject)
                axes.set_title(panel.title, loc="left", fontsize=10, fontweight="bold")
                if nothing is not None:
                    axes.set_axis_off()
                    axes.text(0, 0.8, nothing, transform=axes.transAxes)
            out = BytesIO()
            metadata = {"Date": None} if image_format == "svg" else {"Software": None}
            figure.savefig(out, format=image_format, dpi=_DPI, metadata=metadata)
        return out.getvalue()


def _rows(panels: Sequence[Panel]) -> list[list[Panel]]:
    """Return the panels by rows: a wide one has a row, and two others share one."""
    rows: list[list[Panel]] = []
    for panel in panels:
        if panel.is_wide:
            rows.append([panel, panel])
        elif rows and len(rows[-1]) == 1:
            rows[-1].append(panel)
        else:
            rows.append([panel])
    return [row * 2 if len(row) == 1 else row for row in rows]
