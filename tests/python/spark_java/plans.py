"""Spark's plan of a query, and the metrics of its scans."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

METRICS = ["batchesRead", "batchesSkipped", "batchesDecompressed", "bytesRead", "recordsRead"]


@dataclass
class Scan:
    """A scan of a physical plan."""

    description: str
    columns: list[str]
    metrics: dict[str, int]

    @property
    def decompressed(self) -> int:
        return self.metrics["batchesDecompressed"]


def physical(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().executedPlan()  # noqa: SLF001  (the only way to it)


def optimized(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001


def nodes(plan: Any) -> list[Any]:
    """The nodes below one, also those of adaptive plans and their stages."""
    name = plan.getClass().getSimpleName()
    if name == "AdaptiveSparkPlanExec":
        return nodes(plan.executedPlan())
    if name.endswith("QueryStageExec"):
        return nodes(plan.plan())
    found = [plan]
    children = plan.children().iterator()
    while children.hasNext():
        found += nodes(children.next())
    return found


def names(frame: DataFrame) -> list[str]:
    return [node.getClass().getSimpleName() for node in nodes(physical(frame))]


def scans(frame: DataFrame) -> list[Scan]:
    """The scans, with their metrics so far."""
    return [scan_of(node) for node in nodes(physical(frame)) if node.getClass().getSimpleName() == "BatchScanExec"]


def scan_of(node: Any) -> Scan:
    metrics = {}
    pairs = node.metrics().iterator()
    while pairs.hasNext():
        pair = pairs.next()
        metrics[str(pair.productElement(0))] = int(pair.productElement(1).value())
    scan = node.scan()
    return Scan(scan.description(), list(scan.readSchema().fieldNames()), metrics)


def scan(frame: DataFrame) -> Scan:
    """The only scan, after the query was executed."""
    frame.collect()
    (found,) = scans(frame)
    return found


def filters(described: Scan) -> list[str]:
    """The filters in the description of a scan."""
    found = re.search(r", filters: \[(.*)\]", described.description)
    return [] if found is None else [text for text in found[1].split(", ") if not text.endswith("isNotNull")]
