"""Sorting and picking in large arrays: the same results as numpy's own, slower functions."""

import numpy as np
import pytest

from kafka_rebalance.planning.problem.copies import first_of_each, in_order, rank_within


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [
        (-1, 5, np.int64),
        (0, 2**16, np.int32),
        (-1, 2**16, np.int32),
        (0, 2**20, np.int32),
        (0, 2**32, np.uint32),
        (0, 2**32, np.int64),
    ],
)
def test_in_order(seed: int, low: int, high: int, kind: type[np.integer]) -> None:
    """Stable, with equal keys and with keys at either end, whichever half of their bits differs."""
    rng = np.random.default_rng(seed)
    some = rng.integers(low, high, 20)
    keys = np.concatenate([[high - 1, low], rng.choice(some, 200)]).astype(kind)
    assert in_order(keys).tolist() == np.argsort(keys, kind="stable").tolist()


def test_no_keys() -> None:
    nothing = np.zeros(0, dtype=np.int32)
    assert in_order(nothing).tolist() == rank_within(nothing).tolist() == first_of_each(nothing, 3).tolist() == []


@pytest.mark.parametrize("seed", range(20))
def test_first_of_each(seed: int) -> None:
    keys = np.random.default_rng(seed).integers(0, 30, 40)
    assert first_of_each(keys, 30).tolist() == sorted(np.unique(keys, return_index=True)[1].tolist())
