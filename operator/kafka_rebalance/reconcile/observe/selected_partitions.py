"""Which partitions each spec selects, matched once for each reading of the cluster and not in each round."""

import asyncio
from collections.abc import Iterable, Mapping

from kafka_rebalance.model.topology import PartitionState, TopicPartition
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.reconcile.state.selection import select


class SelectedPartitions:
    """Keeps what the specs selected from the last reading."""

    def __init__(self) -> None:
        self._reading: Mapping[TopicPartition, PartitionState] = {}
        self._found: dict[str, frozenset[TopicPartition]] = {}

    async def read(
        self, rebalances: Iterable[RebalanceView], everything: Mapping[TopicPartition, PartitionState]
    ) -> None:
        """Match the specs of these rebalances off the event loop: many topics take a while."""
        before = self._found if self._reading is everything else {}
        specs = {r.desired.planning_hash: r.desired.spec for r in rebalances}
        new = {key: spec for key, spec in specs.items() if key not in before}
        if new:
            found = await asyncio.to_thread(lambda: {k: frozenset(select(spec, everything)) for k, spec in new.items()})
            self._found, self._reading = {**before, **found}, everything

    def of(
        self, rebalances: Iterable[RebalanceView], everything: Mapping[TopicPartition, PartitionState]
    ) -> dict[str, frozenset[TopicPartition]]:
        """The selected partitions of each of these rebalances, by uid."""
        before = self._found if self._reading is everything else {}
        specs = {r.desired.uid: (r.desired.planning_hash, r.desired.spec) for r in rebalances}
        self._found = {
            key: before[key] if key in before else frozenset(select(spec, everything)) for key, spec in specs.values()
        }
        self._reading = everything
        return {uid: self._found[key] for uid, (key, _) in specs.items()}
