"""Which partitions each spec selects, matched once for the same partitions of the cluster and not in each round.

Rounds look at all rebalances of a cluster, and each spec may take seconds. So a round waits for a few of them only, one
of each namespace after the other; the others are matched in the next rounds.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import zip_longest

from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec
from kafka_rebalance.errors import Refused
from kafka_rebalance.model.topology import PartitionState, TopicPartition
from kafka_rebalance.reconcile.state.inline_thread import in_thread
from kafka_rebalance.reconcile.state.namespace_turns import Turn
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.reconcile.state.selection import select

_ROUND_SECONDS = 2.0
"""After this time, a round matches no further spec."""
_MANY = 10_000
"""Partitions. They are compared in a thread: 200,000 take 30 to 50 ms."""


class SelectedPartitions:
    """Keeps what the specs selected from the last reading. ``turn``: as for ``in_thread``."""

    def __init__(self, turn: Turn | None) -> None:
        self._turn = turn
        self._reading: Mapping[TopicPartition, PartitionState] = {}
        self._found: dict[str, frozenset[TopicPartition]] = {}

    async def read(
        self, rebalances: Iterable[RebalanceView], everything: Mapping[TopicPartition, PartitionState]
    ) -> None:
        """Match the specs of these rebalances off the event loop, one after the other, for a few seconds at most."""
        if self._reading is not everything and not await _same_partitions(self._reading, everything):
            self._found = {}
        self._reading = everything
        now = asyncio.get_running_loop().time
        ends = now() + _ROUND_SECONDS
        for namespace, key, spec in _by_turns(rebalances):
            if key not in self._found:
                self._found[key] = await in_thread(partial(_selected, spec, everything), self._turn, namespace)
                if now() >= ends:
                    return

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
    return same() if len(now) < _MANY else await asyncio.to_thread(same)


def _by_turns(rebalances: Iterable[RebalanceView]) -> Iterator[tuple[str, str, KafkaRebalanceSpec]]:
    """Namespace, hash and spec; the specs of one namespace after those of another, one at a time."""
    of_namespace: defaultdict[str, dict[str, KafkaRebalanceSpec]] = defaultdict(dict)
    for r in rebalances:
        of_namespace[r.desired.metadata.namespace][r.desired.planning_hash] = r.desired.spec
    for turn in zip_longest(*([(name, *row) for row in specs.items()] for name, specs in of_namespace.items())):
        yield from (row for row in turn if row is not None)


def _selected(
    spec: KafkaRebalanceSpec, everything: Mapping[TopicPartition, PartitionState]
) -> frozenset[TopicPartition]:
    """None if its expressions take too long: its plan is refused for the same reason."""
    try:
        return frozenset(select(spec, everything))
    except Refused:
        return frozenset()
