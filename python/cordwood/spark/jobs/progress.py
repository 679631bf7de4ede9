"""Progress of a command on stderr: a bar on a terminal, otherwise a line from time to time."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from cordwood.cli.exit_codes import say
from cordwood.quantities import bytes_in_words
from cordwood.spark.jobs.export_run import Progress

__all__ = ["ExportWatch", "tasks_watched"]

_BAR_DELAY_SECONDS = 2.0
_LINE_SECONDS = 10.0
_REFRESH_SECONDS = 0.5
_MINUTE, _HOUR = 60, 3600


class _Watch:
    """A bar that appears after two seconds, or lines."""

    def __init__(self) -> None:
        self._bar: Bar | None = None
        if sys.stderr.isatty():
            columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
            # the bar must not redirect rows that are printed to the terminal
            self._bar = Bar(
                *columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._task = self._bar.add_task("")
        self._start = self._last_line = time.monotonic()
        self._last_text = ""
        self._shown = False

    def show(self, text: str, done: float, whole: float) -> None:
        """Show the progress. A line is not repeated."""
        now = time.monotonic()
        if self._bar is None:
            if now - self._last_line >= _LINE_SECONDS and text != self._last_text:
                self._last_line, self._last_text = now, text
                say(text)
            return
        self._bar.update(self._task, description=text, completed=done, total=whole or None)
        if not self._shown and now - self._start > _BAR_DELAY_SECONDS:
            self._shown = True
            self._bar.start()

    def end(self) -> None:
        """Remove the bar."""
        if self._bar is not None and self._shown:
            self._bar.stop()


@dataclass(frozen=True)
class _Tasks:
    """The tasks of the jobs that run."""

    done: int
    total: int


def _tasks_of(spark: SparkSession) -> _Tasks | None:
    """Count the tasks of the jobs that run; `None` if none runs, or with Spark Connect, which does not tell."""
    try:
        tracker = spark.sparkContext.statusTracker()
    except PySparkException:
        return None
    jobs = [job for number in tracker.getActiveJobsIds() if (job := tracker.getJobInfo(number)) is not None]
    stages = [stage for job in jobs for number in job.stageIds if (stage := tracker.getStageInfo(number)) is not None]
    if not stages:
        return None
    return _Tasks(sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages))


class ExportWatch:
    """Shows the `Progress` of an export. It is a context manager, and is called with each new progress."""

    def __init__(self, spark: SparkSession) -> None:
        """Watch the tasks of a session, too."""
        self._spark = spark

    def __enter__(self) -> Self:
        """Start the thread that refreshes the display."""
        self._watch = _Watch()
        self._last: Progress | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._repeat, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the thread and remove the display."""
        self._over.set()
        self._thread.join()
        self._watch.end()

    def __call__(self, progress: Progress) -> None:
        """Set the progress to show."""
        self._last = progress

    def _repeat(self) -> None:
        # refreshed between steps, so that the time advances
        while not self._over.wait(_REFRESH_SECONDS):
            last = self._last
            if last is not None:
                self._watch.show(_in_words(last, _tasks_of(self._spark)), last.size_done, last.size)


def _in_words(progress: Progress, tasks: _Tasks | None) -> str:
    """Format progress for a message.

    >>> _in_words(Progress(3, 40, 3 << 30, 40 << 30, 12_345_678, float(210 << 20)), _Tasks(7, 64))
    'step 4 of 40, 7 of 64 tasks, 12,345,678 rows so far, 210.0 MiB/s, 3 min left'
    >>> _in_words(Progress(0, 1, 0, 1 << 30, 0, 0.0), _Tasks(1, 8))
    'step 1 of 1, 1 of 8 tasks'
    """
    step = min(progress.steps_done + 1, progress.steps)
    parts = [f"step {step} of {progress.steps}"]
    if tasks is not None:
        parts.append(f"{tasks.done} of {tasks.total} tasks")
    if progress.steps_done:
        parts.append(f"{progress.rows:,} rows so far")
    left = progress.seconds_left
    if left is not None:
        parts += [f"{bytes_in_words(int(progress.bytes_per_second))}/s", f"{_duration(left)} left"]
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE:.0f} min" if seconds < _HOUR else f"{seconds / _HOUR:.1f} h"


@contextmanager
def tasks_watched(spark: SparkSession) -> Iterator[None]:
    """Show how many tasks of the running Spark job are done."""
    watch = _Watch()
    over = threading.Event()

    def look() -> None:
        while not over.wait(_REFRESH_SECONDS):
            tasks = _tasks_of(spark)
            if tasks is not None:
                watch.show(f"{tasks.done} of {tasks.total} tasks", tasks.done, tasks.total)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        watch.end()
