"""Plans and their certificates."""

from __future__ import annotations

from kafka_rebalance.model.plan import Certificate


class TestCertificate:
    def test_a_plan_that_meets_its_lower_bound_is_optimal(self):
        """The number of moves is proven minimal if it equals the lower bound."""
        assert Certificate.of(moves=3, lower_bound=3) == Certificate(3, optimal=True)
        assert Certificate.of(moves=4, lower_bound=3) == Certificate(3, optimal=False)
