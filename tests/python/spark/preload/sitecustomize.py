"""Python imports this file when it starts, if its directory is on the path: the processes of Spark have it there.

Spark forks a process from a daemon for each step of a query. Each fork would import pandas, pyarrow and the source
again, which takes longer than the step.
"""

import sys

if "pyspark.daemon" in sys.orig_argv:
    import pandas as pd  # noqa: F401
    import pyarrow as pa  # noqa: F401

    import cordwood.spark  # noqa: F401
