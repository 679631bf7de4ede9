"""Jobs over whole directories: `segments`, `count`, `resolve_offsets`, `export`, `rebuild_indexes`, `verify`.

`import_parquet` writes logs. Each is a function here and a command of `python -m cordwood.spark`. The jobs that read
take the options of the source as keywords, for example `isolationLevel="read_committed"`. Records never pass through
the driver.
"""

from cordwood.spark.jobs.counting import count
from cordwood.spark.jobs.errors import ExportError, ImportRowsError, OutputError
from cordwood.spark.jobs.export_run import Export, Progress
from cordwood.spark.jobs.exporting import export
from cordwood.spark.jobs.importing import Import, import_parquet
from cordwood.spark.jobs.reading import resolve_offsets, segments
from cordwood.spark.jobs.rebuilding import rebuild_indexes
from cordwood.spark.jobs.verifying import verify

__all__ = [
    "Export",
    "ExportError",
    "Import",
    "ImportRowsError",
    "OutputError",
    "Progress",
    "count",
    "export",
    "import_parquet",
    "rebuild_indexes",
    "resolve_offsets",
    "segments",
    "verify",
]
