"""How often the whole cluster is read."""

import pytest

from kafka_rebalance.reconcile.observing import EVERYTHING_SECONDS, Observer


class SlowCluster:
    """An admin client and the clock by which its answers take `seconds`; `readings` are the times at which it began."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.readings = []
        self.time = 1000.0

    def monotonic(self):
        return self.time

    async def describe_partitions(self):
        self.readings.append(self.time)
        self.time += self.seconds
        return {}


class TestEverything:
    @pytest.mark.parametrize(
        ("took", "pause"), [(0.01, EVERYTHING_SECONDS), (0.2, EVERYTHING_SECONDS), (1, 20), (2, 30), (10, 30)]
    )
    async def test_a_slow_reading_is_repeated_less_often_but_within_half_a_minute(self, took, pause):
        """A reading that waited for a dying broker must not leave the health gate blind for minutes."""
        there = SlowCluster(took)
        observer = Observer(there, there)
        await observer.everything()
        there.time = 1000 + pause - 0.1
        await observer.everything()
        assert there.readings == [1000]
        there.time = 1000 + pause
        await observer.everything()
        assert there.readings == [1000, 1000 + pause]
