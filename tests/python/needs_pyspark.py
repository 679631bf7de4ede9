"""Import this before pyspark: if it is missing, the module's tests are skipped by name; in CI that is a failure."""

from __future__ import annotations

import importlib.util
import os

import pytest

for needed in ("pyspark", "pyarrow"):
    if importlib.util.find_spec(needed) is None:
        assert "CI" not in os.environ, f"{needed} is required in CI, and is not installed"
        pytest.skip(f"{needed} is not installed", allow_module_level=True)
