"""Which partitions each spec selects, matched once for the same partitions of the cluster and not in each round.

Rounds look at all rebalances of a cluster, and each spec may take seconds. So a round waits for a few of them only, one
of each namespace at a time; the others are matched in the next rounds. The match of a namespace may also wait for those
of other clusters, so no round waits until it ends (`late_matches`).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import partial

from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec
from kafka_rebalance.errors import Refused
from kafka_rebalance.model.topology import PartitionState, TopicPartition
from kafka_rebalance.reconcile.state.late_matches import LateMatches
from kafka_rebalance.reconcile.state.namespace_turns import Turn
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.reconcile.state.round_thread import computed
from kafka_rebalance.reconcile.state.selection import select

_MANY = 10_000
"""Partitions. They are compared in a thread: 200,000 take 30 to 50 ms."""


class SelectedPartitions:
    """Keeps what the specs selected from the last reading. ``turn``: as for ``in_thread``."""

    def __init__(self, turn: Turn | None) -> None:
        self._reading: Mapping[TopicPartition, PartitionState] = {}
        self._found: dict[str, frozenset[TopicPartition]] = {}
        self._matches = LateMatches(turn)
        """By namespace, the one spec that is being matched, with its hash."""

    async def read(
        self, rebalances: Iterable[RebalanceView], everything: Mapping[TopicPartition, PartitionState]
    ) -> None:
        """Match the specs of these rebalances off the event loop, one of each namespace at a time.

        Waits for a few seconds at most. What is not known by then is taken in at a later call.
        """
        if self._reading is not everything and not await _same_partitions(self._reading, everything):
            self.end()
        self._reading = everything
        self._matches.begin_round()
        self._take_in()  # what has ended since the last call
        specs = _by_namespace(rebalances)
        while self._match_next(specs, everything) and await self._matches.wait():
            self._take_in()

    def end(self) -> None:
        """Forget everything. What is being matched is not awaited any more."""
        self._matches.keep(())
        self._reading, self._found = {}, {}

    def _take_in(self) -> None:
        self._found |= {str(match.key): match.task.result() for match in self._matches.take_ended()}

    def _match_next(
        self, specs: Mapping[str, Mapping[str, KafkaRebalanceSpec]], everything: Mapping[TopicPartition, PartitionState]
    ) -> bool:
        """Begin with a spec of each namespace of which none is being matched. Returns whether one is not known yet."""
        missing = False
        for namespace, of_namespace in specs.items():
            key = next((key for key in of_namespace if key not in self._found), None)
            if key is None:
                continue
            missing = True
            self._matches.begin(namespace, key, partial(_selected, of_namespace[key], everything), namespace)
        return missing

    def of(
        self, rebalances: Iterable[RebalanceView], everything: Mapping[TopicPartition, PartitionState]
    ) -> dict[str, frozenset[TopicPartition]]:
        """The selected partitions of each of these rebalances, by uid; all, if its spec is not matched yet."""
        keys = {r.desired.uid: r.desired.planning_hash for r in rebalances}
        self._found = {key: self._found[key] for key in keys.values() if key in self._found}
        known = self._found.keys() >= set(keys.values())
        every = frozenset[TopicPartition]() if known else frozenset(everything)
        return {uid: self._found.get(key, every) for uid, key in keys.items()}


async def _same_partitions(before: Collection[TopicPartition], now: Collection[TopicPartition]) -> bool:
    """Whether two readings have the same partitions. A loop in Python lets the event loop go on beside the thread."""

    def same() -> bool:
        return all(tp in before for tp in now)

    if len(before) != len(now):
        return False
    return await computed(same, many=len(now) >= _MANY)


def _by_namespace(rebalances: Iterable[RebalanceView]) -> dict[str, dict[str, KafkaRebalanceSpec]]:
    """The specs by their hash, of each namespace."""
    found: defaultdict[str, dict[str, KafkaRebalanceSpec]] = defaultdict(dict)
    for r in rebalances:
        found[r.desired.metadata.namespace][r.desired.planning_hash] = r.desired.spec
    return found


def _selected(
    spec: KafkaRebalanceSpec, everything: Mapping[TopicPartition, PartitionState]
) -> frozenset[TopicPartition]:
    """None if its expressions take too long: its plan is refused for the same reason."""
    try:
        return frozenset(select(spec, everything))
    except Refused:
        return frozenset()
