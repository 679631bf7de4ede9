"""Names of parametrised cases."""

from __future__ import annotations

import re


def plain_repr(value: object) -> str:
    """Return the `repr` without addresses: a test has the same name in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
