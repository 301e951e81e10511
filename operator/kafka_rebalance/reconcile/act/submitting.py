"""Sends what was decided to Kafka. An order that is lost or refused is not sent again here: the next round looks."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from structlog.contextvars import bound_contextvars

from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import Permanent, RebalanceError
from kafka_rebalance.execution.partition_status import MovePhase
from kafka_rebalance.execution.schedule import Orders
from kafka_rebalance.kafka.ports import AlterCode, KafkaAdmin, KafkaWriter
from kafka_rebalance.model.topology import ClusterState, PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.last_calls import LastCalls
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.act.origin_records import OriginRecords
from kafka_rebalance.reconcile.act.unanswered_first_calls import UnansweredFirstCalls
from kafka_rebalance.reconcile.decide.arrival_proof import leading_back
from kafka_rebalance.reconcile.decide.step_orders import changed_since, named_by, orders_where, orders_without
from kafka_rebalance.reconcile.state.assessment import RefusedOrders
from kafka_rebalance.reconcile.state.rebalance import Rebalance, is_served
from kafka_rebalance.reconcile.state.record import Stores
from kafka_rebalance.units import few

log = logging.getLogger(__name__)

_MANY_REFUSED = 300
"""Partitions of one call that Kafka refuses, after which nothing is sent for a while."""
_FIRST_PAUSE_SECONDS = 2.0
_LONGEST_PAUSE_SECONDS = 60.0
_READ_JUST_NOW_SECONDS = 2.0
_STAGE = "submit"
_REASSIGN = "reassign"
_EXPECTED = {AlterCode.OK, AlterCode.ELECTION_NOT_NEEDED, AlterCode.NO_REASSIGNMENT_IN_PROGRESS}
_MAY_BE_BEGUN = {AlterCode.OK, AlterCode.UNKNOWN}
_REFUSED = {
    AlterCode.INVALID_REPLICA_ASSIGNMENT,
    AlterCode.UNKNOWN_TOPIC_OR_PARTITION,
    AlterCode.NOT_AUTHORIZED,
    AlterCode.PREFERRED_LEADER_NOT_AVAILABLE,
}
"""Kafka has looked at the order and changed nothing."""
_SENT_AGAIN = "it is sent again, after a pause if many are refused"

Answer = tuple[str, TopicPartition, AlterCode]
"""What was asked for, in words, and what Kafka answered."""


class Submitting:
    """Sends the orders of the rebalances of one cluster. ``rebalances``: those that the engine has, by uid."""

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
        self._last_calls = LastCalls(clock)
        self._first_calls = UnansweredFirstCalls(clock)
        self._clock = clock
        self._pauses: dict[str, tuple[float, float]] = {}
        """By uid: until when nothing is sent after many refusals, and the length of this pause."""
        self._refusals: dict[str, RefusedOrders] = {}
        self._read_at = float("-inf")
        """When the readings of this round were begun, or before that."""

    async def submit(self, rebalance: Rebalance, orders: Orders, cluster: ClusterState) -> bool:
        """Record the origins, then send; whether anything was sent.

        A partition whose last call the reading does not show yet is sent nothing, and one whose first call Kafka may
        still execute is sent no other.
        Without the permission to send, this rebalance says so, and the round goes on. Any other failure ends the round:
        whether an order was carried out is for the next round to find out.
        """
        orders = orders_where(orders, lambda tp: self._last_calls.shown(tp, cluster))
        if self._paused(rebalance):
            orders = Orders(orders.cancels)
        late = self._lifecycle.late_call_possible(rebalance)
        orders = self._first_calls.without_held(rebalance, orders, cluster, late=late)
        orders = await self._origins.record(rebalance, orders, cluster)
        found = await self._read_since(orders)
        # Not in a thread, for which this could wait: of 100,000 calls it takes some 0.1 s.
        unsent = changed_since(orders, cluster.partitions, found) if found is not None else set[TopicPartition]()
        served = is_served(rebalance, self._rebalances)
        if not served or rebalance.desired.deleted_since(rebalance.memory.prepared):
            # The throttle and the records took their time: what was chosen to begin is not begun any more.
            unsent |= {*orders.alters, *orders.elections}
            orders = Orders(orders.cancels if served else ())
        orders = orders_without(orders, unsent)
        failure: RebalanceError | None = None
        sent = False
        async with self._lifecycle.problems_of(rebalance, _STAGE):
            try:
                _forget_led_back(rebalance, orders)
                self._last_calls.note({**dict.fromkeys(orders.cancels), **orders.alters}, cluster)
                with bound_contextvars(**rebalance.log_fields):
                    answers = await submit(self._admin, orders, cluster)
                sent = bool(answers)
                if any(code is AlterCode.UNKNOWN for _, _, code in answers):
                    self._lifecycle.note_unanswered(rebalance)
                _remember_led_back(rebalance, orders, cluster, answers)
                self._last_calls.forget(_not_carried_out(answers))
                refused = _refused(answers)
                if len({*orders.alters, *orders.elections}) >= _MANY_REFUSED:
                    self._pause_after(rebalance.uid, len(refused))
                self._note_refused(rebalance.uid, refused, answers)
                await self._origins.give_up(rebalance, refused)
                _check(rebalance.name, answers)
            except RebalanceError as error:
                if error.reason == Reason.KAFKA_AUTHORIZATION_FAILED:
                    raise
                self._lifecycle.note_unanswered(rebalance)
                failure = error
            except Exception:
                self._lifecycle.note_unanswered(rebalance)
                raise
        # Not before the calls: it may take seconds, in which the partitions of the calls may change too.
        await self._origins.give_up(rebalance, unsent, found)
        if failure is not None:
            raise failure
        return sent

    async def _read_since(self, orders: Orders) -> Mapping[TopicPartition, PartitionState] | None:
        """The partitions of the orders as they are now, if throttles or records took their time since the reading.

        None: the reading has just been made.
        """
        named, age = named_by(orders), self._clock.monotonic() - self._read_at
        if not named or age < _READ_JUST_NOW_SECONDS:
            return None
        return await self._admin.describe_partitions({tp.topic for tp in named})

    def begin_round(self, read_at: float) -> None:
        """What was read for this round was read from ``read_at`` on. What Kafka refused in the last one is forgotten.

        As long as a rebalance pauses because of that, it is kept.
        """
        self._first_calls.keep(self._rebalances.keys())
        self._read_at, now = read_at, self._clock.monotonic()
        paused = {uid for uid, (until, _) in self._pauses.items() if now < until}
        self._refusals = {uid: found for uid, found in self._refusals.items() if uid in paused}

    def refusals(self, rebalance: Rebalance) -> RefusedOrders | None:
        """The orders that Kafka refused since the last round began, or before the pause."""
        return self._refusals.get(rebalance.uid)

    def _note_refused(self, uid: str, refused: Collection[TopicPartition], answers: Iterable[Answer]) -> None:
        if not refused:
            return
        first = min(refused)
        code = next(code for _, tp, code in answers if tp == first)
        found = self._refusals.get(uid) or RefusedOrders(0, f"{first}: Kafka answered {code}; {_SENT_AGAIN}")
        self._refusals[uid] = replace(found, count=found.count + len(refused))

    def _paused(self, rebalance: Rebalance) -> bool:
        until, _ = self._pauses.get(rebalance.uid, (float("-inf"), 0.0))
        return self._clock.monotonic() < until

    def _pause_after(self, uid: str, refused: int) -> None:
        """Each attempt records the origins of all: a server that refuses very many must not keep etcd busy.

        Only after calls with as many orders: a small call, which each round may send first, does not end the pauses.
        """
        _, before = self._pauses.pop(uid, (0.0, 0.0))
        if refused >= _MANY_REFUSED:
            pause = min(2 * before, _LONGEST_PAUSE_SECONDS) or _FIRST_PAUSE_SECONDS
            self._pauses = {key: row for key, row in self._pauses.items() if key in self._rebalances}
            self._pauses[uid] = self._clock.monotonic() + pause, pause

    def refused(self, rebalance: Rebalance) -> bool:
        """Whether Kafka did not permit the last orders of this rebalance."""
        return rebalance.memory.problem is not None and rebalance.memory.problem.stage == _STAGE

    def doubted(self, rebalance: Rebalance) -> frozenset[TopicPartition]:
        """The partitions of the rebalance that wait for a reading which shows their last call, or their first one."""
        statuses = rebalance.assessment.statuses.by_partition
        waiting = self._last_calls.doubted.union(self._first_calls.waiting(rebalance.uid))
        found = ((tp, statuses.get(tp)) for tp in waiting)
        return frozenset(tp for tp, status in found if status is not None and status.phase is MovePhase.READY)


def _forget_led_back(rebalance: Rebalance, orders: Orders) -> None:
    """Forget these partitions before they are called again, because Kafka may execute a call without answering it."""
    called = orders.alters.keys() | set(orders.cancels)
    if not rebalance.memory.led_back.isdisjoint(called):
        rebalance.memory = replace(rebalance.memory, led_back=rebalance.memory.led_back - called)


def _remember_led_back(rebalance: Rebalance, orders: Orders, cluster: ClusterState, answers: Sequence[Answer]) -> None:
    run = rebalance.record.loaded_run
    accepted = {tp for call, tp, code in answers if call == _REASSIGN and code is AlterCode.OK}
    moves = (run.move_of[tp] for tp in accepted if tp in run.move_of) if run is not None else ()
    if found := leading_back(moves, orders.alters, cluster):
        rebalance.memory = replace(rebalance.memory, led_back=rebalance.memory.led_back | found)


async def submit(admin: KafkaWriter, orders: Orders, cluster: ClusterState) -> list[Answer]:
    """Send the orders and return the answers. No leader is elected if an alter was not permitted."""
    submitted = {**dict.fromkeys(orders.cancels), **orders.alters}
    altered = await admin.alter_reassignments(submitted) if submitted else {}
    answers = [(_REASSIGN, tp, code) for tp, code in altered.items()]
    if AlterCode.NOT_AUTHORIZED in altered.values():
        return answers
    # A leader movement is the reorder and the election after it: elect at once what has just been put in order.
    elections = [*orders.elections, *(tp for tp in _reordered(orders, cluster) if altered.get(tp) in _MAY_BE_BEGUN)]
    try:
        elected = await admin.elect_preferred(elections) if elections else {}
    except RebalanceError as error:
        if error.reason != Reason.KAFKA_AUTHORIZATION_FAILED:
            raise
        elected = dict.fromkeys(elections, AlterCode.NOT_AUTHORIZED)  # what the alters were answered counts
    return [*answers, *(("elect the leader of", tp, code) for tp, code in elected.items())]


def at_once(orders: Orders, cluster: ClusterState) -> Orders:
    """The part that copies nothing and is done inside the call."""
    alters = {tp: to for tp, to in orders.alters.items() if set(to) <= set(cluster.partitions[tp].replicas)}
    return Orders(orders.cancels, alters, orders.elections)


def copies(orders: Orders, cluster: ClusterState, uncovered: Collection[tuple[str, str]] | None) -> Orders:
    """The part that copies, without partitions whose throttle is not in place yet: they wait for the next round.

    ``uncovered``: topic and ``partition:broker`` of each replica that is to be throttled and is not yet. None: the
    ledger cannot be trusted, so no copy may be sent.
    """
    if uncovered is None:
        return Orders()
    waiting = {TopicPartition(topic, int(entry.partition(":")[0])) for topic, entry in uncovered}
    alters = {
        tp: to
        for tp, to in orders.alters.items()
        if not set(to) <= set(cluster.partitions[tp].replicas) and tp not in waiting
    }
    return Orders(alters=alters)


def _reordered(orders: Orders, cluster: ClusterState) -> list[TopicPartition]:
    """Partitions that were just given a new first replica which is in sync: a call without copies, done at once."""
    found = []
    for tp, replicas in orders.alters.items():
        state = cluster.partitions[tp]
        same = set(replicas) <= set(state.replicas)
        if same and replicas[0] != state.leader and state.leader in replicas and replicas[0] in state.isr:
            found.append(tp)
    return found


def _refused(answers: Sequence[Answer]) -> set[TopicPartition]:
    """The partitions for which Kafka refused every call."""
    done = {tp for _, tp, code in answers if code not in _REFUSED}
    return {tp for _, tp, _ in answers} - done


def _not_carried_out(answers: Sequence[Answer]) -> set[TopicPartition]:
    """The partitions whose reassignment Kafka has not begun or cancelled."""
    return {tp for call, tp, code in answers if call == _REASSIGN and code not in _MAY_BE_BEGUN}


def _check(name: str, answers: Sequence[Answer]) -> None:
    """Permanent("KafkaAuthorizationFailed") if Kafka does not permit the calls, which it says of each partition."""
    unexpected: dict[tuple[str, AlterCode], list[TopicPartition]] = {}
    for call, tp, code in answers:
        if code is AlterCode.NOT_AUTHORIZED:
            message = f"Kafka does not allow us to {call} {tp}: the ACL for Alter on the cluster is missing"
            raise Permanent(Reason.KAFKA_AUTHORIZATION_FAILED, message)
        if code not in _EXPECTED:
            unexpected.setdefault((call, code), []).append(tp)
    # A line for each partition is in the audit log.
    for (call, code), tps in unexpected.items():
        log.info("%s: %s of %s answered %s; looking again", name, call, few(tps), code)
