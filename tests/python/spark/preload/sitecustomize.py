"""Python imports this file when it starts, if its directory is on the path: the processes of Spark have it there.

Spark starts a process for each stream, and forks one from a daemon for each step of a query. They would spend most of
their time with imports.
"""

import gc
import sys

# Spark puts an archive with its modules first on the path, from which they are compiled in each process. The
# installed package has the same modules.
sys.path[:] = [path for path in sys.path if not path.endswith("pyspark.zip")]

if "pyspark.daemon" in sys.orig_argv:
    import pandas as pd  # noqa: F401
    import pyarrow as pa  # noqa: F401

    import cordwood.spark  # noqa: F401

    # a collection in a fork would copy the pages of all these objects
    gc.freeze()
