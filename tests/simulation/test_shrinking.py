"""A failing seed is shrunk to the events that it takes."""

from types import SimpleNamespace

from tests.simulation.shrinking import shrunk
from tests.simulation.world import Kind

WORLD = SimpleNamespace(seed=7, kind=Kind.USUAL, happened=8)


def failing_with(*needed):
    """In place of `simulate`: fails if all of these events happen."""
    return lambda _seed, _kind, only: SimpleNamespace(broken=["a rule"] if set(needed) <= only else [])


def test_what_it_takes_is_kept():
    assert shrunk(WORLD, failing_with(3, 5)) == {3, 5}


def test_a_seed_that_fails_without_any_event():
    assert shrunk(WORLD, failing_with()) == set()
