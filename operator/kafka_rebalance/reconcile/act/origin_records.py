"""Records what each partition is before the run sends it something, and gives up records of what was never sent."""

import logging
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace

from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.execution.first_call import carried_out, reordered_instead
from kafka_rebalance.execution.partition_status import MovePhase
from kafka_rebalance.execution.schedule import Orders
from kafka_rebalance.model.run import Origin
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, ReplicaKey, Replicas, TopicPartition
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import Stores, on_record, without

log = logging.getLogger(__name__)

_STAGE = "record the origins"


class OriginRecords:
    """The origins of the open runs of one cluster."""

    def __init__(self, lifecycle: Lifecycle, stores: Stores) -> None:
        self._lifecycle = lifecycle
        self._stores = stores
        self._new: dict[str, Mapping[TopicPartition, bool]] = {}
        """By uid: partitions for which Kafka has carried out nothing if it refuses the orders that are sent now.

        With each: whether the run has then changed nothing at all.
        """
        self._again: dict[str, Collection[TopicPartition]] = {}
        """Those of them whose first call may have been sent before."""
        self._new_dirs: dict[str, Mapping[ReplicaKey, bool]] = {}
        """The same of the replicas that are asked for another log dir now."""

    async def record(self, rebalance: Rebalance, orders: Orders, cluster: ClusterState) -> Orders:
        """Record the replicas of each partition before its first call; returns the orders that may be sent.

        These are the orders for partitions with an origin on record. A null for any other partition is not sent,
        because another tool started the reassignment in flight there. Before the second call of a partition it is
        recorded that the first was carried out. So if the operator is killed between the record and the order, changes
        by others to the partition count as theirs.
        """
        calls = {**dict.fromkeys(orders.cancels, ()), **orders.alters}
        calls |= {tp: cluster.partitions[tp].replicas for tp in orders.elections}
        if calls and not await self._stay_on_record(rebalance):
            return Orders()
        found = {tp: (_recorded(rebalance, tp, cluster), cluster.partitions[tp]) for tp in calls}
        due = {tp: row for tp, call in calls.items() if (row := _due(*found[tp], call)) is not None}
        late = self._lifecycle.late_call_possible(rebalance)
        first = {tp for tp, row in due.items() if row.first_call}
        again = set() if late else {tp for tp in calls.keys() - due.keys() if _still_first(*found[tp], calls[tp])}
        run, written = rebalance.record.run, False
        if due and run is not None:
            rows = {**_in_flight(rebalance, cluster), **due}
            async with self._lifecycle.problems_of(rebalance, _STAGE):
                origins = await self._stores.origins.append(rebalance.uid, run.run_id, rows.values())
                rebalance.record = replace(rebalance.record, origins=origins)
                written = True
        else:
            self._lifecycle.nothing_to_do(rebalance, _STAGE)
        allowed = {tp for tp in calls if (written if tp in due else _is_ours(*found[tp]))}
        self._new[rebalance.uid] = {
            tp: recorded is None or (not late and recorded.leader == state.leader)
            for tp in allowed.intersection(first | again)
            for recorded, state in [found[tp]]
        }
        self._again[rebalance.uid] = again
        return replace(
            orders,
            cancels=tuple(tp for tp in orders.cancels if tp in allowed),
            alters={tp: to for tp, to in orders.alters.items() if tp in allowed},
            elections=tuple(tp for tp in orders.elections if tp in allowed),
        )

    async def keep(
        self,
        rebalance: Rebalance,
        asks: Collection[ReplicaKey],
        log_dirs: Mapping[ReplicaKey, str],
        cluster: ClusterState,
    ) -> frozenset[ReplicaKey]:
        """Record the replicas that are about to move between log dirs.

        Returns the replicas that are completely on record.

        ``log_dirs``: the present log dirs of the replicas whose log dir must be on record. The recorded first call
        shows that the run does not change the replica lists, so a later change of their order by another tool is not
        undone.
        """
        if asks and not await self._stay_on_record(rebalance):
            return frozenset()
        states = {tp: cluster.partitions[tp] for tp, _ in asks if tp in cluster.partitions}
        before = {tp: _recorded(rebalance, tp, cluster) for tp in states}
        rows = dict[TopicPartition, Origin]()
        for (tp, broker), path in log_dirs.items():
            if tp in states:
                row = rows.get(tp) or before[tp] or _as_it_is(states[tp])
                rows[tp] = row.with_log_dirs([(broker, path)])
        due = [row for tp, row in rows.items() if row != before[tp]]
        late = self._lifecycle.late_call_possible(rebalance)
        self._new_dirs[rebalance.uid] = {
            (tp, broker): _as_found(before[tp], states[tp], late=late)
            for (tp, broker), path in log_dirs.items()
            if tp in rows and _in_place(before[tp], broker, path, late=late)
        }
        run = rebalance.record.run
        async with self._lifecycle.problems_of(rebalance, _STAGE):
            if due and run is not None:
                origins = await self._stores.origins.append(rebalance.uid, run.run_id, due)
                rebalance.record = replace(rebalance.record, origins=origins)
        return frozenset(
            key
            for key in asks
            if key[0] in states
            and (found := _recorded(rebalance, key[0], cluster)) is not None
            and (key not in log_dirs or found.log_dirs is None or key[1] in dict(found.log_dirs))
        )

    async def _stay_on_record(self, rebalance: Rebalance) -> bool:
        """Whether what is on record stays there; after a restart it is written once more before anything is sent.

        The API server may still carry out the request by which an earlier process has given up an origin.
        """
        run, stored = rebalance.record.run, self._stores.origins
        if run is None or not rebalance.record.origins or stored.is_written(rebalance.uid, run.run_id):
            return True
        async with self._lifecycle.problems_of(rebalance, _STAGE):
            origins = await stored.append(rebalance.uid, run.run_id, ())
            rebalance.record = replace(rebalance.record, origins=origins)
        return stored.is_written(rebalance.uid, run.run_id)

    async def give_up(
        self,
        rebalance: Rebalance,
        refused: Collection[TopicPartition],
        found: Mapping[TopicPartition, PartitionState] | None = None,
    ) -> None:
        """Give up the origins of partitions whose first order Kafka has just refused, or which were not sent it.

        What the run may have changed before, the leader or a log dir, stays on record. ``found``: the partitions as
        they were read since the record. What they show of a first call that was sent before stays on record too.
        """
        new, gone = self._new.get(rebalance.uid, {}), dict[Origin, Origin | None]()
        again = self._again.get(rebalance.uid, ())
        for tp in new.keys() & refused:
            if (row := rebalance.record.origins.get(tp)) is not None:
                state = (found or {}).get(tp) if tp in again else None
                if state is not None and carried_out(row.replicas, row.first_call, state):
                    continue
                instead = replace(row, first_call=row.replicas)
                gone[row] = instead if row.log_dirs != () or not new[tp] else None
        await self._strike_off(rebalance, gone)

    async def give_up_log_dirs(self, rebalance: Rebalance, refused: Collection[ReplicaKey]) -> None:
        """Give up the log dirs of replicas whose first move a broker has just refused, or which were not sent it."""
        new, gone = self._new_dirs.get(rebalance.uid, {}), dict[Origin, Origin | None]()
        brokers = defaultdict[TopicPartition, set[BrokerId]](set)
        for tp, broker in new.keys() & refused:
            brokers[tp].add(broker)
        for tp, left in brokers.items():
            if (row := rebalance.record.origins.get(tp)) is not None:
                instead = replace(row, log_dirs=tuple(at for at in row.log_dirs or () if at[0] not in left))
                gone[row] = instead if instead.log_dirs or not all(new[tp, b] for b in left) else None
        await self._strike_off(rebalance, gone)

    async def _strike_off(self, rebalance: Rebalance, gone: Mapping[Origin, Origin | None]) -> None:
        gone = {row: instead for row, instead in gone.items() if row != instead}
        run = rebalance.record.run
        if run is None or not gone:
            return
        rebalance.record = replace(rebalance.record, origins=without(rebalance.record.origins, gone))
        try:
            await self._stores.origins.give_up(rebalance.uid, run.run_id, gone)
        except RebalanceError as error:
            text = "%s: origins of refused orders are still stored, the next record is written without them: %s"
            log.warning(text, rebalance.name, error.message)


def _recorded(rebalance: Rebalance, tp: TopicPartition, cluster: ClusterState) -> Origin | None:
    return on_record(tp, cluster.partitions[tp].topic_id, rebalance.record.origins)


def _as_it_is(state: PartitionState) -> Origin:
    return Origin(state.tp, state.topic_id, state.replicas, state.leader, first_call=state.replicas)


def _in_flight(rebalance: Rebalance, cluster: ClusterState) -> dict[TopicPartition, Origin]:
    """Records of first calls that are seen in flight. Written with others, they need no request of their own later."""
    flying = [tp for tp in rebalance.assessment.statuses.within(MovePhase.IN_FLIGHT) if tp in cluster.partitions]
    found = {tp: (_recorded(rebalance, tp, cluster), cluster.partitions[tp]) for tp in flying}
    return {tp: row for tp, known in found.items() if known[0] is not None and (row := _due(*known, ())) is not None}


def _due(recorded: Origin | None, state: PartitionState, call: Replicas) -> Origin | None:
    """The entry that must be on record before this call (the call is empty for a null); None if the record suffices.

    An election, whose call is the list as it is, does not change it: the first call that does is still to come. If
    others have given the list another order before that, their order is recorded.
    """
    done = None
    if recorded is not None:
        if not recorded.first_call:
            return None
        done = carried_out(recorded.replicas, recorded.first_call, state)
    if recorded is None or done is None:
        return Origin(state.tp, state.topic_id, state.replicas, state.leader, call) if call else None
    if not state.in_flight and reordered_instead(recorded.replicas, recorded.first_call, state.replicas):
        return replace(recorded.reordered(state.replicas, state.leader), first_call=call) if call else None
    if done:
        return replace(recorded, first_call=())
    if call in {(), recorded.replicas, recorded.first_call}:
        return None
    # Never () here: nothing was carried out, and Kafka may refuse this call too.
    return replace(recorded, first_call=call)


def _still_first(recorded: Origin | None, state: PartitionState, call: Replicas) -> bool:
    """Whether this is the first call on record, sent again because it was not carried out."""
    if recorded is None or not call or recorded.first_call != call:
        return False
    return carried_out(recorded.replicas, call, state) is False


def _in_place(recorded: Origin | None, broker: BrokerId, path: str, *, late: bool) -> bool:
    """Whether the run has left the replica in this log dir if the broker refuses to move it now."""
    if recorded is None:
        return True
    left = dict(recorded.log_dirs) if recorded.log_dirs is not None else None
    return left is not None and (broker not in left or (left[broker] == path and not late))


def _as_found(recorded: Origin | None, state: PartitionState, *, late: bool) -> bool:
    """Whether the run has changed neither the list nor the leader of the partition."""
    if recorded is None:
        return True
    same = recorded.first_call == recorded.replicas == state.replicas and recorded.leader == state.leader
    return same and not late


def _is_ours(recorded: Origin | None, state: PartitionState) -> bool:
    """Whether the run has sent the partition something, or is about to."""
    if recorded is None or not recorded.first_call:
        return recorded is not None
    return carried_out(recorded.replicas, recorded.first_call, state) is not None
