"""Jobs over whole directories: `segments`, `count`, `resolve_offsets`, `export`, `rebuild_indexes`, `verify`.

Each is a function here and a command of `python -m cordwood.spark`. They take the options of the source as keywords,
for example `isolationLevel="read_committed"`. Records never pass through the driver.
"""

from cordwood.spark.jobs.counting import count
from cordwood.spark.jobs.errors import ExportError, OutputError
from cordwood.spark.jobs.export_run import Export, Progress
from cordwood.spark.jobs.exporting import export
from cordwood.spark.jobs.reading import resolve_offsets, segments
from cordwood.spark.jobs.rebuilding import rebuild_indexes
from cordwood.spark.jobs.verifying import verify

__all__ = [
    "Export",
    "ExportError",
    "OutputError",
    "Progress",
    "count",
    "export",
    "rebuild_indexes",
    "resolve_offsets",
    "segments",
    "verify",
]
