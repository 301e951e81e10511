"""Any plan that is accepted, any interleaving: no disk is ever over its limit, and no partition waits for ever.

The judge keeps its own books: a copy takes all its bytes as soon as it is submitted, and a deleted replica keeps its
bytes until the broker gets to delete it. Sizes are read as brokers report them, while a copy grows.
"""

import random

from hypothesis import assume, event, given
from hypothesis import strategies as st
from tests.examples import examples

from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.limits import Ceilings, Limits
from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, MovePhase, Observation, judge
from kafka_rebalance.execution.schedule import RebalanceShare, schedule
from kafka_rebalance.kafka.ports import LogDir, disk_space
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, PartitionState, TopicPartition
from kafka_rebalance.reconcile.decide.disk_capacity import refuse_overfull

BROKERS = [BrokerId(b) for b in range(1, 6)]
LISTS = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3, unique=True).map(tuple)


@st.composite
def tight_clusters(draw):
    """Partitions (list now, list then, bytes), the room of each broker, and the percentage of its disk that this is.

    The room is little more than what the broker holds at the end. With a percentage, it may hold more at the start.
    """
    percent = draw(st.sampled_from([None, 50]))
    rows = []
    for _ in range(draw(st.integers(2, 9))):
        now = draw(LISTS)
        then = draw(st.permutations(BROKERS))[: len(now)]
        rows.append((now, tuple(then), draw(st.integers(1, 30))))
    sizes = {}
    for broker in BROKERS:
        start = sum(size for now, _, size in rows if broker in now)
        end = sum(size for _, then, size in rows if broker in then)
        start = start if percent is None else (start * percent + 99) // 100
        sizes[broker] = max(start, end) + draw(st.sampled_from([0, 0, 5, 10, 30]))
    return rows, sizes, percent


class Disks:
    """A cluster by the byte: what lies where, what is being copied, and what is still to be deleted."""

    def __init__(self, rows, sizes, percent, rnd):
        self.sizes, self.percent, self.rnd = sizes, percent, rnd
        self.start = {broker: sum(size for now, _, size in rows if broker in now) for broker in sizes}
        self.bytes = {TopicPartition("t", n): size for n, (_, _, size) in enumerate(rows)}
        self.lists = {TopicPartition("t", n): now for n, (now, _, _) in enumerate(rows)}
        self.leaders = {tp: now[0] for tp, now in self.lists.items()}
        self.flying = {}
        """Partition -> the list that it goes to."""
        self.arrived = {}
        """Partition and broker -> bytes of the copy so far."""
        self.doomed = set()
        """Partition and broker: dropped, and not deleted from the disk yet."""

    def check(self):
        """No prefix of what may still happen is over the size of a disk: all that was begun is complete at once."""
        for broker, size in self.sizes.items():
            here = {tp for tp, held in self.lists.items() if broker in (*held, *self.flying.get(tp, ()))}
            here |= {tp for tp, b in self.doomed if b == broker}
            assert sum(self.bytes[tp] for tp in here) <= max(size, self.start[broker]), broker

    def told(self):
        """As brokers report them: only the received part of a copy takes room."""
        taken = dict.fromkeys(self.sizes, 0)
        for tp, held in self.lists.items():
            for broker in held:
                taken[broker] += self.bytes[tp]
        for tp, broker in self.doomed:
            taken[broker] += self.bytes[tp] if (tp, broker) not in self.arrived else 0
        for (_, broker), size in self.arrived.items():
            taken[broker] += size
        totals = {broker: size * 100 // (self.percent or 100) for broker, size in self.sizes.items()}
        return {b: (LogDir("/data", {}, {}, total, total - taken[b]),) for b, total in totals.items()}

    def state(self, tp):
        held, to = self.lists[tp], self.flying.get(tp, ())
        adding = tuple(b for b in to if b not in held)
        removing = tuple(b for b in held if b not in to) if to else ()
        shown = (*to, *removing) if to else held
        return PartitionState(tp, "", shown, frozenset(held), self.leaders[tp], adding, removing)

    def submit(self, orders):
        for tp, to in orders.alters.items():
            assert tp not in self.flying
            self.flying[tp] = to
            for broker in set(to) - set(self.lists[tp]):
                assert (tp, broker) not in self.doomed, "Kafka would find the old log there"
                self.arrived[tp, broker] = 0
            if set(to) <= set(self.lists[tp]):
                self.complete(tp)
        for tp in orders.elections:
            self.leaders[tp] = self.lists[tp][0]

    def complete(self, tp):
        to = self.flying.pop(tp)
        self.doomed |= {(tp, b) for b in self.lists[tp] if b not in to}
        self.lists[tp] = to
        self.arrived = {key: size for key, size in self.arrived.items() if key[0] != tp}
        if self.leaders[tp] not in to:
            self.leaders[tp] = to[0]

    def go_on(self):
        """Some copies grow, some end, and some deletions are carried out; one of them at least."""
        for key in self.arrived:
            self.arrived[key] = self.rnd.randint(self.arrived[key], self.bytes[key[0]])
        ends = [(self.complete, tp) for tp in sorted(self.flying)]
        ends += [(self.doomed.discard, key) for key in sorted(self.doomed)]
        for do, what in self.rnd.sample(ends, self.rnd.randint(min(1, len(ends)), len(ends))):
            do(what)
        return bool(ends)


class TestAnyInterleaving:
    @examples(4)  # few clusters are tight enough for copies to wait for one another
    @given(
        tight_clusters(),
        st.integers(1, 3),
        st.sampled_from([1, 2, 100]),
        st.sampled_from([None, 1, 2]),
        st.randoms(use_true_random=False),
    )
    def test_room_at_every_moment(self, cluster, r, p, most_in, rnd: random.Random):
        """With any R, P and cap per broker, until each partition has arrived."""
        rows, sizes, percent = cluster
        disks = Disks(rows, sizes, percent, rnd)
        goals = {TopicPartition("t", n): then for n, (_, then, _) in enumerate(rows)}
        planned = (PlannedPartition(tp, disks.lists[tp], goals[tp], "", disks.bytes[tp]) for tp in goals)
        try:
            refuse_overfull(Plan(tuple(planned), Certificate(0, optimal=True)), disks.told(), limit=percent)
        except Refused:
            event("refused")
            assume(False)
        moves = {tp: PartitionMove(tp, "", disks.lists[tp], disks.lists[tp], to) for tp, to in goals.items()}
        live = {b: Broker(b) for b in BROKERS}
        for _ in range(1000):
            disks.check()
            seen = ClusterState("c", live, {tp: disks.state(tp) for tp in goals})
            observed = Observation(seen, {"t": 1})
            statuses = {tp: judge(move, observed, Direction.FORWARD, r) for tp, move in moves.items()}
            if all(status.phase is MovePhase.DONE for status in statuses.values()):
                return
            spaces = {broker: disk_space(dirs) for broker, dirs in disks.told().items()}
            kept = {broker: space.kept_free(percent) for broker, space in spaces.items()}
            share = RebalanceShare(statuses, disks.bytes, Limits(r, p, 100, 1000, most_in), goals, kept)
            free = {broker: space.fullest for broker, space in spaces.items()}
            (orders,) = schedule([share], seen, Ceilings(), free, dict(disks.arrived))
            disks.submit(orders)
            disks.check()
            sent = orders.alters or orders.elections
            assert disks.go_on() or sent, f"nothing goes on: {orders.no_room}"
        raise AssertionError("it never ends")
