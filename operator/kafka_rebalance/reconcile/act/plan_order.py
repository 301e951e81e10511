"""Who of those that want a plan may make it in this round: places in the queue, and rollbacks to take over.

A thread compares what many partitions are asked for. Nothing is decided here: see ``decide.queue_places`` and
``decide.teardown``.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.reconcile.decide.queue_places import place_requests
from kafka_rebalance.reconcile.decide.teardown import renamed_from, selections_with_all_of
from kafka_rebalance.reconcile.state.assessment import QueuePlace
from kafka_rebalance.reconcile.state.pauses import with_pauses
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.reconcile.state.round_thread import computed

_MANY = 10_000
"""Partitions of a rollback, by selections that they are looked for in: some 5 ms."""

Selected = Mapping[str, frozenset[TopicPartition]]


async def places_of(
    rebalances: Iterable[RebalanceView], selected: Selected, now: datetime, monotonic: float
) -> dict[str, QueuePlace]:
    """The places of those that have an open run or want a plan, by uid; see ``place_requests``.

    What they ask for is read before the first pause.
    """
    requests = place_requests(rebalances, selected, now, monotonic)
    return await computed(requests.places, many=requests.many)


async def takeovers(rebalances: Collection[RebalanceView], selected: Selected) -> dict[str, list[RebalanceView]]:
    """By uid of each, the rollbacks that it may take over if its plan moves what they move back.

    It may plan beside them. ``selected``: as for ``place_requests``. Each rollback is compared once with each set that
    is selected, however many resources select it.
    """
    renamed = {uid: olds async for uid, olds in with_pauses(renamed_from(rebalances, selected))}
    asked = defaultdict[str, dict[int, frozenset[TopicPartition]]](dict)
    by_uid = dict[str, RebalanceView]()
    async for uid, olds in with_pauses(renamed.items()):
        for old in olds:
            by_uid[old.desired.uid] = old
            asked[old.desired.uid][id(selected[uid])] = selected[uid]
    able = dict[str, set[int]]()
    for uid, old in by_uid.items():
        sets, record = asked[uid].values(), old.record
        many = len(sets) * len(record.moves) >= _MANY
        able[uid] = await computed(selections_with_all_of, record, old.assessment, sets, many=many)
    found = dict[str, list[RebalanceView]]()
    async for uid, olds in with_pauses(renamed.items()):
        found[uid] = [old for old in olds if id(selected[uid]) in able[old.desired.uid]]
    return found
