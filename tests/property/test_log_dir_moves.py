"""Any broker with several log dirs: the plan, and what is carried out of it, stays within every log dir at any moment.

The judge keeps its own books: a copy takes all its bytes when it begins, and the old replica keeps its own until the
copy has arrived. Copies arrive in any order, and the direction may change at any time.
"""

import random

from hypothesis import assume, event, given
from hypothesis import strategies as st
from tests.examples import examples

from kafka_rebalance.api.connection import KafkaSource
from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec
from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.log_dir_moves import LogDirShare, LogDirStatuses, judge_replica, log_dir_orders
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.kafka.ports import LogDir
from kafka_rebalance.model.plan import Certificate, Plan
from kafka_rebalance.model.run import Origin
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.observe.log_dir_reader import reading_of
from kafka_rebalance.reconcile.runs.log_dir_plan import LogDirInputs, log_dir_questions, with_log_dirs
from kafka_rebalance.reconcile.runs.log_dir_search import answers_to

ONE = BrokerId(1)
DONE = PartitionStatus(MovePhase.DONE)


class Broker:
    """Log dirs by the byte. ``at`` and ``future`` are log dirs by partition."""

    def __init__(self, placed, capacity):
        self.size = {TopicPartition("t", n): size for n, (_, size) in enumerate(placed)}
        self.at = {TopicPartition("t", n): path for n, (path, _) in enumerate(placed)}
        self.capacity, self.future = capacity, {}

    def used(self, path):
        there = sum(self.size[tp] for tp, at in self.at.items() if at == path)
        return there + sum(self.size[tp] for tp, to in self.future.items() if to == path)

    def described(self, rnd):
        """As the broker tells it: a copy grows, and takes only what it has."""
        dirs = []
        for path, capacity in self.capacity.items():
            held = {tp: self.size[tp] for tp, at in self.at.items() if at == path}
            growing = {tp: rnd.randint(0, self.size[tp]) for tp, to in self.future.items() if to == path}
            free = capacity - sum(held.values()) - sum(growing.values())
            dirs.append(LogDir(path, held, growing, capacity, free))
        return tuple(dirs)

    def ask(self, tp, path):
        self.future.pop(tp, None)
        if self.at[tp] != path:
            self.future[tp] = path

    def arrive(self, tp):
        self.at[tp] = self.future.pop(tp)


@st.composite
def brokers(draw):
    """Replicas in two or three log dirs, of which one may be drained, and little more room than they take."""
    paths = ["/a", "/b", "/c"][: draw(st.integers(2, 3))]
    placed = draw(st.lists(st.tuples(st.sampled_from(paths), st.integers(1, 30)), min_size=1, max_size=7))
    total = sum(size for _, size in placed)
    capacity = {}
    for path in paths:
        held = sum(size for at, size in placed if at == path)
        capacity[path] = max(held, -(-total // len(paths))) + draw(st.sampled_from([0, 5, 15, 40, 200]))
    drained = draw(st.sampled_from([None, *paths]))
    return Broker(placed, capacity), drained


def planned(broker, drained, band, rnd):
    drain = [] if drained is None else [{"broker": 1, "path": drained}]
    goals = {"logDirs": {"band": f"{band}%", "drain": drain}}
    spec = KafkaRebalanceSpec.model_validate(
        {"kafka": KafkaSource(bootstrap_servers="k:9092"), "strategy": "LogDirs", "goals": goals}
    )
    states = {tp: PartitionState(tp, "id", replicas_of(1), frozenset({ONE}), ONE) for tp in broker.size}
    inputs = LogDirInputs(frozenset({ONE}), {ONE: broker.described(rnd)}, states, (), states, {})
    made = Plan((), Certificate.of(0, 0))
    questions = log_dir_questions(made, spec, inputs)
    return with_log_dirs(made, inputs, questions, answers_to(questions))


class TestAnyBroker:
    @given(given_=brokers(), band=st.integers(1, 100), limit=st.integers(1, 4), seed=st.integers(0, 2**32))
    @examples(60)
    def test_every_prefix_is_within_the_limits(self, given_, band, limit, seed):
        broker, drained = given_
        rnd = random.Random(seed)
        try:
            plan = planned(broker, drained, band, rnd)
        except Refused as refused:
            event(refused.reason)
            if refused.reason != "InsufficientDisk":
                raise
            return
        before, moves = dict(broker.at), plan.log_dirs
        event(f"{min(len(moves), 3)} moves or more")
        turn_at = rnd.choice([None, rnd.randint(1, 6)])
        direction, asked = Direction.FORWARD, dict[TopicPartition, Origin]()
        for number in range(200):
            if number == turn_at:
                direction = Direction.ROLLBACK
            seen = reading_of({ONE: broker.described(rnd)}, [move.key for move in moves])
            judged = {m.key: judge_replica(m, seen, DONE, direction, asked.get(m.tp)) for m in moves}
            statuses = LogDirStatuses(direction, judged)
            if statuses.finished(direction, moves):
                break
            for (tp, _), path in log_dir_orders([LogDirShare(statuses, limit)], seen)[0].asks.items():
                asked.setdefault(tp, Origin(tp, "id", replicas_of(1), log_dirs=((ONE, broker.at[tp]),)))
                broker.ask(tp, path)
                assert len(broker.future) <= limit
                assert all(broker.used(path) <= capacity for path, capacity in broker.capacity.items())
            flying = sorted(broker.future)
            for tp in rnd.sample(flying, rnd.randint(min(1, len(flying)), len(flying))):
                broker.arrive(tp)
        else:
            # A rollback may find what others need in the way; forward an order was found before anything began.
            assert direction is Direction.ROLLBACK
            assume(False)
        wanted = {m.tp: m.after if direction is Direction.FORWARD else m.origin for m in moves}
        assert broker.at == before | wanted
        assert not broker.future
        if drained is not None and direction is Direction.FORWARD:
            assert drained not in broker.at.values()
