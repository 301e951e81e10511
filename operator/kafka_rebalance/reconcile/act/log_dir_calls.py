"""Sends the calls that move replicas between log dirs. Lost or refused calls are left to the next round."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from structlog.contextvars import bound_contextvars

from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import Permanent, RebalanceError
from kafka_rebalance.execution.log_dir_moves import LogDirReading
from kafka_rebalance.execution.partition_status import Direction
from kafka_rebalance.execution.schedule import Orders
from kafka_rebalance.kafka.ports import KafkaAdmin, LogDirCode
from kafka_rebalance.model.topology import BrokerId, ClusterState, ReplicaKey
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.judges import moves_many_in_dirs
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.act.origin_records import OriginRecords
from kafka_rebalance.reconcile.decide.log_dir_decisions import orders_for_log_dirs, placements, replicas_to_read
from kafka_rebalance.reconcile.observe.log_dir_reader import LogDirReader
from kafka_rebalance.reconcile.state.rebalance import Rebalance, is_served
from kafka_rebalance.reconcile.state.record import Stores
from kafka_rebalance.reconcile.state.round_thread import computed
from kafka_rebalance.units import few

log = logging.getLogger(__name__)

_STAGE = "move between log dirs"
_MAY_BE_BEGUN = {LogDirCode.OK, LogDirCode.UNKNOWN}


class LogDirThrottle(Protocol):
    """Says which brokers have the rate of copies between their log dirs that applies to them."""

    def log_dirs_throttled(self, brokers: Iterable[BrokerId]) -> frozenset[BrokerId]:
        """Those of the brokers on which a copy may start."""


class LogDirCalls:
    """Moves replicas between the log dirs of the brokers of one cluster. ``rebalances``: all of the engine, by uid."""

    def __init__(
        self,
        admin: KafkaAdmin,
        rebalances: Mapping[str, Rebalance],
        lifecycle: Lifecycle,
        stores: Stores,
        clock: Clock,
    ) -> None:
        self._admin = admin
        self._rebalances = rebalances
        self._lifecycle = lifecycle
        self._origins = OriginRecords(lifecycle, stores)
        self._reader = LogDirReader(admin, clock)

    async def read(self, running: Iterable[Rebalance]) -> LogDirReading | None:
        """The log dirs of the replicas that move between them; None: not read in this round."""
        return await self._reader.read(replicas_to_read(running))

    async def place(self, rebalance: Rebalance, orders: Orders, cluster: ClusterState) -> None:
        """Tell the brokers the log dirs of the replicas that these orders create.

        If a placement is lost, the replica is moved to its log dir after it was created.
        """
        wanted = placements(rebalance, orders, cluster.partitions)
        if not wanted:
            return
        try:
            answers = await self._alter(rebalance, wanted)
        except RebalanceError as error:
            log.info("%s: replicas are not placed: %s", rebalance.name, error.message)
            return
        lost = sum(code not in {LogDirCode.NOT_THERE, LogDirCode.OK} for code in answers.values())
        if lost:
            log.info("%s: %d of %d replicas are not placed", rebalance.name, lost, len(wanted))

    async def move(
        self,
        in_turn: Iterable[Rebalance],
        running: Sequence[Rebalance],
        seen: LogDirReading | None,
        cluster: ClusterState,
        throttle: LogDirThrottle,
    ) -> bool:
        """Record the start and the origins, then send. Returns whether anything was sent.

        ``in_turn``: the rebalances of ``running`` that are served now. ``seen``: the log dirs as read in this round;
        None: nothing is sent.
        """
        if seen is None:
            return False
        choose, sent = partial(orders_for_log_dirs, running, seen), False
        orders = await computed(choose, many=moves_many_in_dirs(running))
        for rebalance in in_turn:
            found, statuses = orders[rebalance.uid], rebalance.assessment.log_dirs.by_replica
            throttled = throttle.log_dirs_throttled({broker for _, broker in found.asks})
            asks = {key: to for key, to in found.asks.items() if statuses[key].cancel or key[1] in throttled}
            sent |= await self._send(rebalance, asks, seen, cluster)
        return sent

    async def _send(
        self, rebalance: Rebalance, asks: Mapping[ReplicaKey, str], seen: LogDirReading, cluster: ClusterState
    ) -> bool:
        if not asks:
            self._lifecycle.nothing_to_do(rebalance, _STAGE)
            return False
        statuses = rebalance.assessment.log_dirs.by_replica
        begins = not all(statuses[key].cancel for key in asks)
        if not await self._lifecycle.record_start(rebalance, begins=begins):
            return False
        statuses = rebalance.assessment.log_dirs.by_replica
        moved = asks.keys() if rebalance.assessment.log_dirs.direction is Direction.FORWARD else ()
        found = {key: seen.places[key] for key in moved if not statuses[key].cancel}
        # A copy in flight to another log dir is of this run, so its log dir is on record.
        left = {key: place.at for key, place in found.items() if place.at is not None and place.future is None}
        ours = await self._origins.keep(rebalance, asks.keys(), left, cluster)
        allowed: dict[ReplicaKey, str] = {}
        async with self._lifecycle.problems_of(rebalance, _STAGE):
            same = await self._reader.unchanged(seen, await self._of_the_same_topics(ours, cluster))
            if not is_served(rebalance, self._rebalances):
                same = set()
            statuses = rebalance.assessment.log_dirs.by_replica
            deleted = rebalance.desired.deleted_since(rebalance.memory.prepared)
            allowed = {key: path for key, path in asks.items() if key in same and (statuses[key].cancel or not deleted)}
            await self._origins.give_up_log_dirs(rebalance, ours - allowed.keys())
            if allowed:
                answers = await self._alter(rebalance, allowed)
                refused = {key for key, code in answers.items() if code not in _MAY_BE_BEGUN}
                await self._origins.give_up_log_dirs(rebalance, refused)
                _check(rebalance.name, answers)
        return bool(allowed)

    async def _of_the_same_topics(self, keys: Collection[ReplicaKey], cluster: ClusterState) -> set[ReplicaKey]:
        """Those whose topic still has the id that it had when it was read: Kafka knows the topics of calls by name."""
        if not keys:
            return set()
        ids = await self._admin.topic_ids({tp.topic for tp, _ in keys})
        return {(tp, broker) for tp, broker in keys if cluster.partitions[tp].topic_id in {"", ids.get(tp.topic)}}

    async def _alter(self, rebalance: Rebalance, wanted: Mapping[ReplicaKey, str]) -> Mapping[ReplicaKey, LogDirCode]:
        """Send the call. Remembers if it, or a part of it, got no answer: Kafka may execute it later."""
        try:
            with bound_contextvars(**rebalance.log_fields):
                answers = await self._admin.alter_log_dirs(wanted)
        except Exception:
            self._lifecycle.note_unanswered(rebalance, between_log_dirs=True)
            raise
        if LogDirCode.UNKNOWN in answers.values():
            self._lifecycle.note_unanswered(rebalance, between_log_dirs=True)
        return answers


def _check(name: str, answers: Mapping[ReplicaKey, LogDirCode]) -> None:
    """Permanent("KafkaAuthorizationFailed") if Kafka does not permit the calls, which it says of each replica."""
    unexpected: dict[LogDirCode, list[str]] = {}
    for (tp, broker), code in answers.items():
        if code is LogDirCode.NOT_AUTHORIZED:
            message = (
                f"Kafka does not allow us to move {tp} between log dirs: the ACL for Alter on the cluster is missing"
            )
            raise Permanent(Reason.KAFKA_AUTHORIZATION_FAILED, message)
        if code is not LogDirCode.OK:
            unexpected.setdefault(code, []).append(f"{tp} on broker {broker}")
    for code, replicas in unexpected.items():
        log.info("%s: the move of %s answered %s; looking again", name, few(replicas), code)
