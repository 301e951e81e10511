"""No run undoes moves of others, and no null breaks a partition, for any actions of people, users and brokers.

People move a partition to a new broker, so that their lists do not look like a step; or to brokers of the plan, if
Kafka has carried out nothing of ours for it.
"""

import asyncio
from collections import Counter
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st
from tests.examples import examples
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.api.v1alpha1 import REBALANCES, UNDO_ANNOTATION
from kafka_rebalance.errors import Transient
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of

BROKERS = range(1, 8)
PEOPLES = range(10, 60)
PARTITIONS = 4
MIN_INSYNC = 2
INCLUDED = ((4, 5, 6), (5, 6, 7), (1, 4, 5), (2, 3, 7), (1, 2, 3, 4))


class Watched(KafkaInMemory):
    """``expected``: the required final replicas of each partition, as people left them, independent of our calls."""

    def __init__(self):
        super().__init__((*BROKERS, *PEOPLES), t=[[1, 2, 3]] * PARTITIONS)
        self.values |= {("t", "min.insync.replicas"): str(MIN_INSYNC)}
        self.expected = dict(enumerate(self.lists("t")))
        self.peoples_turn = set()
        self.dead, self.lost, self.wrong, self.nulls = set(), False, [], Counter()
        self.deaf, self.touched = False, set()
        self.unused = iter(PEOPLES)

    async def alter_reassignments(self, orders):
        if self.deaf:
            self.deaf = False
            raise Transient("KafkaUnreachable", "not sent")
        self.touched |= orders.keys()
        for tp, to in orders.items():
            state = self.states[tp]
            if to is None and state.in_flight:
                kept = state.isr - set(state.adding)
                self.nulls["sent"] += 1
                if len(kept) < min(MIN_INSYNC, len(state.isr)):
                    self.wrong.append(f"null of {state}")
                if tp in self.peoples_turn:
                    self.wrong.append(f"null of a reassignment of others: {state}")
        answers = await super().alter_reassignments(orders)
        self.settle()
        if self.lost:
            self.lost = False
            raise Transient("KafkaUnreachable", "no answer")
        return answers

    def move(self, number):
        """People move a partition that is at rest."""
        state = self.states[TopicPartition("t", number)]
        if not state.in_flight:
            self.expected[number] = [next(self.unused), *state.replicas[:2]]
            self.assign("t", number, *self.expected[number])
            self.settle()

    def move_among_planned(self, number):
        """People move a partition that nothing was carried out for. No first call leads to that list."""
        tp = TopicPartition("t", number)
        if tp not in self.touched and not self.states[tp].in_flight:
            self.expected[number] = [5, 4, 1]
            self.assign("t", number, *self.expected[number])
            self.settle()

    def begin(self, number):
        """People begin to move one; it arrives with the others."""
        tp = TopicPartition("t", number)
        state = self.states[tp]
        if not state.in_flight:
            fresh, kept = BrokerId(next(self.unused)), state.replicas[:2]
            self.expected[number] = [fresh, *kept]
            removing = tuple(b for b in state.replicas if b not in kept)
            self.states[tp] = replace(state, replicas=(fresh, *kept, *removing), adding=(fresh,), removing=removing)
            self.peoples_turn.add(tp)

    def arrive(self):
        """All copies to live brokers."""
        slow = self.slow
        super().arrive()
        self.peoples_turn = {tp for tp in self.peoples_turn if self.states[tp].in_flight}
        self.slow = slow
        self.settle()

    def _complete(self, tp):
        """As recorded: a copy joins the ISR, and the step ends only when every replica that stays is in sync."""
        state = self.states[tp]
        self.states[tp] = state = replace(state, isr=state.isr | (set(state.adding) - self.dead))
        if set(state.replicas) - set(state.removing) <= state.isr:
            super()._complete(tp)

    def die(self, broker):
        """No more than two at a time."""
        if len(self.dead) < 2 and broker not in self.dead:
            self.dead.add(broker)
            del self.brokers[broker]
            self.settle()

    def revive(self):
        """All of them; their replicas are in sync again."""
        back, self.dead = self.dead, set()
        for broker in back:
            self.brokers[BrokerId(broker)] = replace(self.brokers[BrokerId(10)], id=BrokerId(broker))
        for tp, state in self.states.items():
            there = (set(state.replicas) - set(state.adding)) & back
            self.states[tp] = replace(state, isr=state.isr | there)
        self.settle()

    def settle(self):
        """Dead brokers are in no ISR, unless it is the last replica in it; a live one leads."""
        for tp, state in self.states.items():
            isr = state.isr - self.dead or state.isr
            live = [b for b in state.replicas if b in isr and b not in self.dead]
            leader = state.leader if state.leader in live else next(iter(live), None)
            self.states[tp] = replace(state, isr=isr, leader=leader)


def edit(**spec):
    """A patch of the spec."""
    return lambda operator: operator.edit(**spec)


def approve(operator):
    """Approve the current plan, if any."""
    plan = operator.status.get("plan") or {}
    operator.edit(approval={"policy": "Manual", "planHash": plan.get("hash"), "driftBudget": 0})


def slow(*brokers):
    """Copies to these brokers take time from now on."""

    def change(operator):
        operator.kafka.slow = set(replicas_of(*brokers))

    return change


def lose(operator):
    """The reply to the next order is lost."""
    operator.kafka.lost = True


def not_send(operator):
    """The next order does not reach Kafka."""
    operator.kafka.deaf = True


HAPPENINGS = {
    **{f"include {brokers}": edit(brokers={"include": list(brokers)}) for brokers in INCLUDED},
    **{f"people move {n}": lambda operator, n=n: operator.kafka.move(n) for n in range(PARTITIONS)},
    **{f"people move {n} as planned": lambda operator, n=n: operator.kafka.move_among_planned(n) for n in range(2)},
    **{f"people begin to move {n}": lambda operator, n=n: operator.kafka.begin(n) for n in range(2)},
    **{f"broker {b} dies": lambda operator, b=b: operator.kafka.die(b) for b in (2, 3, 4)},
    "brokers return": lambda operator: operator.kafka.revive(),
    "require approval": edit(approval={"policy": "Manual", "driftBudget": 0}),
    "approve": approve,
    "require no approval": edit(approval={"policy": "Automatic", "driftBudget": 0}),
    "copies take time": slow(*BROKERS),
    "copies to 4 and 5 take time": slow(4, 5),
    "copies take no time": slow(),
    "copies arrive": lambda operator: operator.kafka.arrive(),
    "a reply is lost": lose,
    "an order is not sent": not_send,
    "restart the operator": lambda operator: operator.restart(),
}
ORIGINALS_DIE = [
    ("copies take time", 4),
    ("broker 2 dies", 1),
    ("broker 3 dies", 1),
    ("copies arrive", 1),
    ("include (5, 6, 7)", 4),
    ("copies arrive", 4),
]
NOT_SENT = [("an order is not sent", 2), ("people move 0 as planned", 1), ("people move 1 as planned", 1)]


@examples(0.5)
@given(
    st.sampled_from(["Manual", "Automatic"]),
    st.lists(st.tuples(st.sampled_from(sorted(HAPPENINGS)), st.integers(1, 4)), min_size=4, max_size=20),
    st.sampled_from(["undo", "delete"]),
)
@example("Automatic", ORIGINALS_DIE, "delete")
@example("Automatic", ORIGINALS_DIE[:-2], "delete")
@example("Automatic", NOT_SENT, "undo")
@example("Automatic", NOT_SENT, "delete")
def test_what_others_moved_is_never_undone(policy, happenings, end):
    """In the end each partition is as it was, or as people left it last; no null left too few in sync."""
    kafka = asyncio.run(live_through(policy, happenings, end))
    assert kafka.wrong == []
    assert dict(enumerate(kafka.lists("t"))) == kafka.expected


async def live_through(policy, happenings, end):
    """Run a rebalance through the events until it has succeeded, then undo or delete it."""
    operator = OperatorInMemory(Watched())
    kafka = operator.kafka
    operator.apply(
        throttle={"unlimited": True},
        approval={"policy": policy, "driftBudget": 0},
        brokers={"include": [4, 5, 6]},
        execution={"parallelPartitionCount": 2, "brokerSettleTime": "1s", "maxUnhealthy": 100},
    )
    for what, rounds in happenings:
        HAPPENINGS[what](operator)
        for _ in range(rounds):
            await operator.round()
        if operator.run is not None and not operator.run.open:
            break  # its origins are those of a run that has ended
    kafka.revive()
    kafka.slow, kafka.lost, kafka.deaf = set(), False, False
    if end == "undo":
        operator.edit(approval={"policy": "Automatic"})
        await rounds_until(operator, lambda: operator.run is not None and not operator.run.open)
        operator.order(UNDO_ANNOTATION, operator.run.plan_hash)
        await rounds_until(operator, lambda: operator.state in {"Undone", "RolledBackPartially", "NothingToUndo"})
    else:
        ended = operator.run is not None and not operator.run.open
        operator.delete()
        await rounds_until(operator, lambda: (REBALANCES, "kafka", "r") not in operator.kube.resources)
        if ended:
            kafka.expected = dict(enumerate(kafka.lists("t")))  # a deletion after success moves nothing
    return kafka


async def rounds_until(operator, holds):
    """Copies arrive in every round."""
    for _ in range(200):
        if holds():
            return
        operator.kafka.arrive()
        await operator.round()
    raise AssertionError(f"it does not come to that: {operator.state}: {operator.message}")
