"""The loops of the search as machine code."""

from kafka_rebalance.planning.load.compiled import compiled


def test_without_a_directory_for_the_cache() -> None:
    """As in a read-only image: each process compiles. numba has no place for code that is in no file."""
    there: dict[str, object] = {}
    exec("def twice(x):\n    return 2 * x", there)
    twice = compiled(there["twice"])
    assert (twice(21), twice.__name__) == (42, "twice")
