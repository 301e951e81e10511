"""The pairs (leader, follower at a position) for given leaders: as even as any choice of followers allows."""

from itertools import product

import numpy as np
import pytest

from kafka_rebalance.model.goals import RackAwareness
from kafka_rebalance.planning.ordering.chains import PairChains
from kafka_rebalance.planning.ordering.pairs import Pairs
from kafka_rebalance.planning.problem.instance import Instance, encode

BROKERS = 6


def drawn(seed: int) -> tuple[Instance, np.ndarray]:
    """Lists of one to four replicas, most of them led by few brokers."""
    rng = np.random.default_rng(seed)
    rf = rng.integers(1, 5, 14)
    lists = [rng.permutation(BROKERS)[:width] for width in rf]
    lists = [np.append(one[one < 2], one[one >= 2]) for one in lists]
    holder = np.concatenate(lists)
    everyone = np.ones(BROKERS, dtype=np.bool_)
    return encode([None] * BROKERS, everyone, rf, holder, RackAwareness.DISABLED), holder


def rows(instance: Instance, lists: np.ndarray) -> list[list[int]]:
    return [lists[start : start + width].tolist() for start, width in zip(instance.start, instance.rf, strict=True)]


def squares(pairs: list[tuple[int, int]]) -> int:
    return sum(pairs.count(pair) ** 2 for pair in set(pairs))


def evenest(lists: list[list[int]], place: int) -> int:
    """By trying every choice, leader by leader."""
    total = 0
    for leader in range(BROKERS):
        choices = [row[place:] for row in lists if len(row) > place and row[0] == leader]
        total += min(squares([(leader, follower) for follower in chosen]) for chosen in product(*choices))
    return total


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("table", ["every pair has a number", "only pairs that could occur"])
def test_evenest(seed: int, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No choice of followers is more even; each list keeps its set, its leader and its earlier positions."""
    if table.startswith("only"):
        monkeypatch.setattr("kafka_rebalance.planning.ordering.pairs._TABLE", 0)
    instance, lists = drawn(seed)
    for place in (1, 2):
        before = rows(instance, lists)
        pairs = Pairs(instance, lists, place)
        pairs.even(lists)
        PairChains(pairs).run(lists)
        after = rows(instance, lists)
        assert squares([(row[0], row[place]) for row in after if len(row) > place]) == evenest(before, place)
        assert [row[:place] for row in after] == [row[:place] for row in before]
        assert [set(row) for row in after] == [set(row) for row in before]
