"""Both planners on seeded clusters with a recorded optimum on all six levels, as many as a soak draws at random."""

from __future__ import annotations

from random import Random

import pytest
from tests.property.planning_judge import Metrics, check
from tests.property.planning_optima import optimum, optimum_of_bytes
from tests.property.recorded_optima import known, seeded
from tests.property.test_planning_budgets import random_request
from tests.property.test_planning_core import fast

from kafka_rebalance.model.goals import RackAwareness
from kafka_rebalance.planning import plan

CLUSTERS = 60


@pytest.mark.parametrize("awareness", RackAwareness)
class TestSeededClusters:
    def test_every_level_is_the_exact_optimum(self, awareness: RackAwareness) -> None:
        """No plan has fewer violations, then more even counts, fewer moves or bytes, more even leaders and pairs."""
        random = Random(71)
        for _ in range(seeded(CLUSTERS)):
            request = random_request(random, awareness)
            made = plan(request)
            assert made.certificate.optimal
            assert check(request, made) == Metrics(*known(optimum_of_bytes, request))

    def test_the_planner_of_large_clusters_moves_as_little(self, awareness: RackAwareness) -> None:
        """Counts and moves are exact; leaders are at best as even as in the optimum."""
        random = Random(72)
        for _ in range(seeded(CLUSTERS)):
            request = random_request(random, awareness)
            metrics, best = check(request, fast(request)), Metrics(*known(optimum, request))
            assert (metrics.count_sumsq, metrics.moves) == (best.count_sumsq, best.moves)
            assert metrics.leader_sumsq >= best.leader_sumsq
