"""Published times and moves of Cruise Control on clusters of these kinds and sizes: measured once, elsewhere, and
quoted.

The variant with the fewest moves above its lower bound is quoted. Its clusters come from another generator with the
same rules, so the bounds differ slightly from those of the benchmark's clusters.
"""

from typing import Any

_COLUMNS = ("what", "partitions", "brokers", "bound", "seconds", "moves", "replicaSpread", "leaderSpread")
_ROWS = [
    ("add", 10_000, 100, 2_720, 1.2, 2_722, 1, 47),
    ("drift", 10_000, 100, 2_368, 0.8, 2_908, 0, 9),
    ("add", 100_000, 300, 27_270, 19, 27_276, 1, 92),
    ("remove", 100_000, 300, 30_016, 22, 30_016, 1, 1),
    ("drift", 100_000, 300, 23_845, 8.4, 29_067, 0, 2),
    ("add", 200_000, 1_000, 54_500, 116, 54_527, 1, 82),
    ("remove", 200_000, 1_000, 60_040, 128, 60_040, 139, 125),
    ("drift", 200_000, 1_000, 47_231, 66, 56_970, 0, 20),
]

CRUISE_CONTROL: list[dict[str, Any]] = [dict(zip(_COLUMNS, row, strict=True)) for row in _ROWS]
