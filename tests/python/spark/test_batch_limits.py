"""The option `maxLogBatchBytes`: a batch above it is an error in every mode, with a code of its own."""

from __future__ import annotations

from pathlib import Path

import batches
import needs_pyspark  # noqa: F401
import pytest
from batches import GZIP, Rec, batch, write_partition

from cordwood.spark.errors import BATCH_TOO_LARGE, SparkLogError
from spark.reading import plan, struct


@pytest.mark.parametrize("codec", [batches.NONE, GZIP], ids=["stored", "decompressed"])
@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"])
def test_a_larger_batch_is_an_error_in_every_mode(mode: str, codec: int, tmp_path: Path) -> None:
    sizes = {0: 10, 1: 16_000, 2: 10}
    built = [batch(offset, [Rec(b"x" * size)], codec=codec) for offset, size in sizes.items()]
    path = write_partition(tmp_path / "orders-0", [(0, built)])
    for _ in range(2):
        with pytest.raises(SparkLogError, match="maxLogBatchBytes") as raised:
            plan(path, schema=struct("offset", "value"), mode=mode, maxLogBatchBytes=10_000).rows()
        assert (raised.value.code, raised.value.topic, raised.value.partition) == (BATCH_TOO_LARGE, "orders", 0)
        assert (raised.value.segment, raised.value.position) == (0, len(built[0]))
        # the logs that are open with another limit are others
        found = plan(path, schema=struct("offset"), mode=mode, maxLogBatchBytes=20_000).rows()
        assert [row[0] for row in found] == [0, 1, 2]
    assert [row[0] for row in plan(path, schema=struct("offset"), mode=mode).rows()] == [0, 1, 2]
