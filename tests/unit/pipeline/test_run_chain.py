from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from kafka_rebalance.pipeline.run_chain import Chain, chain
from kafka_rebalance.pipeline.sample_manifests import StoredBatch

START = datetime(2026, 3, 1, tzinfo=UTC)


def run(name: str, *seconds: float) -> list[StoredBatch]:
    return [StoredBatch(START + timedelta(seconds=at), name, number, 1) for number, at in enumerate(seconds)]


class TestChain:
    def test_runs_that_follow_each_other_are_one(self) -> None:
        """A CronJob starts a sampler again and again: the time between two of them is a pair like any other."""
        first, second = run("a", 0, 10), run("b", 20, 30)
        assert chain([*second, *first]) == Chain((*first, *second), (), ())

    def test_of_two_at_the_same_time_the_first_counts_until_it_ends(self) -> None:
        """A pair of samples of both would have the difference of their clocks in its time."""
        first, second = run("a", 0, 10, 20), run("b", 9.8, 19.8, 29.8, 39.8)
        found = chain([*first, *second])
        assert found.batches == (*first, *second[2:])
        assert found.breaks == (START + timedelta(seconds=29.8),)
        assert found.dropped == tuple(second[:2])

    def test_one_within_another_is_left_out(self) -> None:
        """Nothing is broken by it."""
        first, second = run("a", 0, 10, 20), run("b", 5, 15)
        assert chain([*first, *second]) == Chain(tuple(first), (), tuple(second))

    def test_the_order_in_a_run_is_that_of_its_sequence(self) -> None:
        """The times do not matter."""
        batches = run("a", 0, 10, 5)
        assert chain(reversed(batches)).batches == tuple(batches)

    def test_a_batch_that_is_stored_twice_counts_once(self) -> None:
        """As after a merge that was interrupted."""
        batches = run("a", 0, 10)
        assert chain([*batches, *batches]) == Chain(tuple(batches), (), ())

    def test_the_work_grows_with_the_number_of_runs_not_with_its_square(self) -> None:
        """Each edit of a KafkaConnection begins a run, and a Job looks at the runs of three days of all clusters."""
        reads = 0

        class Counted(StoredBatch):
            def __getattribute__(self, name: str) -> Any:
                nonlocal reads
                reads += name == "sampled_at"
                return super().__getattribute__(name)

        runs = [Counted(START + timedelta(seconds=10 * at), f"r{at}", 0, 1) for at in range(500)]
        assert chain(runs).batches == tuple(runs)
        assert reads < 50 * len(runs)
