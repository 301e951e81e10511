"""Environment variables that every program which the tests and the demo start inherits."""

import hashlib
import os
from pathlib import Path

from e2e.bench.cache import cache_root

_SEARCH = Path(__file__).parents[2] / "operator/kafka_rebalance/planning/load"


def set_defaults() -> None:
    """Set those that are not set."""
    # Spark's driver runs for a minute: optimised compilation costs more than it gains.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_root() / "numba" / _hash_of_search()))


def _hash_of_search() -> str:
    """Compiling the search of the load goals takes 14 s of CPU, which later runs need not spend.

    numba does not notice a changed function in another file, so its cache is named after the content of all of them.
    """
    content = b"".join(path.read_bytes() for path in sorted(_SEARCH.glob("*.py")))
    return hashlib.sha256(content).hexdigest()[:16]
