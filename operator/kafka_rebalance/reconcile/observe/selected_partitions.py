"""Which partitions each spec selects, matched once for each reading of the cluster and not in each round."""

from collections.abc import Iterable, Mapping
from functools import partial

from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec
from kafka_rebalance.errors import Refused
from kafka_rebalance.model.topology import PartitionState, TopicPartition
from kafka_rebalance.reconcile.state.inline_thread import in_thread
from kafka_rebalance.reconcile.state.namespace_turns import Turn
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.reconcile.state.selection import select


class SelectedPartitions:
    """Keeps what the specs selected from the last reading. ``turn``: as for ``matched``."""

    def __init__(self, turn: Turn | None) -> None:
        self._turn = turn
        self._reading: Mapping[TopicPartition, PartitionState] = {}
        self._found: dict[str, frozenset[TopicPartition]] = {}

    async def read(
        self, rebalances: Iterable[RebalanceView], everything: Mapping[TopicPartition, PartitionState]
    ) -> None:
        """Match the specs of these rebalances off the event loop, one after the other: each may take seconds."""
        found = dict(self._found) if self._reading is everything else {}
        specs = {r.desired.planning_hash: r.desired.spec for r in rebalances}
        for key, spec in specs.items():
            if key not in found:
                found[key] = await in_thread(partial(_selected, spec, everything), self._turn)
        self._found, self._reading = found, everything

    def of(
        self, rebalances: Iterable[RebalanceView], everything: Mapping[TopicPartition, PartitionState]
    ) -> dict[str, frozenset[TopicPartition]]:
        """The selected partitions of each of these rebalances, by uid; all, if its spec has changed since ``read``."""
        keys = {r.desired.uid: r.desired.planning_hash for r in rebalances}
        self._found = {key: self._found[key] for key in keys.values() if key in self._found}
        known = self._found.keys() >= set(keys.values())
        every = frozenset[TopicPartition]() if known else frozenset(everything)
        return {uid: self._found.get(key, every) for uid, key in keys.items()}


def _selected(
    spec: KafkaRebalanceSpec, everything: Mapping[TopicPartition, PartitionState]
) -> frozenset[TopicPartition]:
    """None if its expressions take too long: its plan is refused for the same reason."""
    try:
        return frozenset(select(spec, everything))
    except Refused:
        return frozenset()
