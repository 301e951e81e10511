"""Environment variables that every program which the tests and the demo start inherits."""

import os

from e2e.bench.cache import cache_root


def set_defaults() -> None:
    """Set those that are not set."""
    # Spark's driver runs for a minute: optimised compilation costs more than it gains.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    # Compiling the search of the load goals takes seconds of CPU, which later runs need not spend.
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_root() / "numba"))
