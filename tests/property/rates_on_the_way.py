"""Carries out a plan in a random order and counts the rates of every broker at every moment, with books of its own.

What may be sent is decided by the code under test, as the engine asks it. What a broker uses is recounted from the
request and from the lists and leaders as they are: a replica has its bytes in from the call that adds it until it is
dropped, a leader what it leads. A reading may be older than the last calls.
"""

from __future__ import annotations

from collections import defaultdict
from random import Random

from kafka_rebalance.execution.limits import Ceilings, Limits
from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, MovePhase, Observation, judge
from kafka_rebalance.execution.rate_order import held_back, rate_order
from kafka_rebalance.execution.schedule import RebalanceShare, schedule
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, PartitionState, Replicas, TopicPartition
from kafka_rebalance.planning import PartitionInput, PlanRequest


class Traffic:
    """The partitions of a request by list, leader and reassignment, and the rates that they cause."""

    def __init__(self, request: PlanRequest) -> None:
        self.goals = request.goals.load
        self.inputs = {p.tp: p for p in request.partitions}
        self.lists = {p.tp: p.replicas for p in request.partitions}
        self.leaders = {p.tp: p.replicas[0] for p in request.partitions}
        self.flying: dict[TopicPartition, Replicas] = {}
        """Partition -> the list that it goes to."""
        first = self.use()
        self.most = {
            (b, goal.resource): max(
                request.capacities[b][goal.resource] * goal.capacity_limit / 100, first[b, goal.resource]
            )
            for goal in self.goals
            for b in request.targets
            if goal.capacity_limit is not None
            and goal.resource is not LoadResource.DISK
            and goal.resource in request.capacities.get(b, {})
        }

    def use(self) -> dict[tuple[BrokerId, LoadResource], float]:
        found: dict[tuple[BrokerId, LoadResource], float] = defaultdict(float)
        for tp, p in self.inputs.items():
            rates = dict(zip((goal.resource for goal in self.goals), p.loads, strict=False))
            leader = self.leaders[tp]
            for b in {*self.lists[tp], *self.flying.get(tp, ())}:
                found[b, LoadResource.BYTES_IN] += rates.get(LoadResource.BYTES_IN, 0)
            found[leader, LoadResource.LEADER_BYTES_IN] += rates.get(LoadResource.LEADER_BYTES_IN, 0)
            found[leader, LoadResource.BYTES_OUT] += rates.get(LoadResource.BYTES_OUT, 0) + self._to_followers(p, rates)
        return found

    @staticmethod
    def _to_followers(p: PartitionInput, rates: dict[LoadResource, float]) -> float:
        known = [rates[r] for r in (LoadResource.BYTES_IN, LoadResource.LEADER_BYTES_IN) if r in rates]
        return (len(p.replicas) - 1) * (known[0] if known else p.written)

    def check(self) -> None:
        """No broker is above its limit, or further above it than before the first step."""
        now = self.use()
        for (b, resource), most in self.most.items():
            assert now[b, resource] <= most * (1 + 1e-6) + 1e-6, (b, resource, now[b, resource], most)

    def state(self, tp: TopicPartition) -> PartitionState:
        held, to = self.lists[tp], self.flying.get(tp, ())
        adding = tuple(b for b in to if b not in held)
        removing = tuple(b for b in held if b not in to) if to else ()
        return PartitionState(
            tp, "", (*to, *removing) if to else held, frozenset(held), self.leaders[tp], adding, removing
        )

    def complete(self, tp: TopicPartition) -> None:
        self.lists[tp] = self.flying.pop(tp)
        if self.leaders[tp] not in self.lists[tp]:
            self.leaders[tp] = self.lists[tp][0]


class Execution:
    """Rounds of a run, forward and then, from a random moment on, back to the origins."""

    def __init__(self, request: PlanRequest, made: Plan, random: Random) -> None:
        self.traffic, self.random, self.made = Traffic(request), random, made
        self.order = rate_order(made)
        self.live = {b.id: b for b in request.brokers} | {b: Broker(b) for p in request.partitions for b in p.replicas}
        self.replicas, self.parallel = random.randint(1, 3), random.choice([1, 2, 100])
        self.sent = set[TopicPartition]()
        self.held = set[Direction]()
        """The directions in which a partition had to wait for a limit."""
        self.seen = self.reading()

    def reading(self) -> ClusterState:
        return ClusterState("c", self.live, {p.tp: self.traffic.state(p.tp) for p in self.made.partitions})

    def moves(self, direction: Direction) -> dict[TopicPartition, PartitionMove]:
        """A rollback moves what anything was sent for."""
        return {
            p.tp: PartitionMove(p.tp, "", p.current, p.current, p.target)
            for p in self.made.partitions
            if direction is Direction.FORWARD or p.tp in self.sent
        }

    def round(self, direction: Direction) -> bool:
        """Read (or not), send, and let something happen; returns whether everything has arrived."""
        fresh = self.random.random() < 0.8
        if fresh:
            self.seen = self.reading()
        observed = Observation(self.seen, {tp.topic: 1 for tp in self.seen.partitions})
        moves = self.moves(direction)
        statuses = {tp: judge(move, observed, direction, self.replicas) for tp, move in moves.items()}
        if fresh and all(status.phase is MovePhase.DONE for status in statuses.values()):
            return True
        held = held_back(self.order, statuses, self.seen.partitions, direction) if self.order else {}
        if held:
            self.held.add(direction)
        goals = {tp: move.target if direction is Direction.FORWARD else move.origin for tp, move in moves.items()}
        limits = Limits(self.replicas, self.parallel, 100, 1000)
        (orders,) = schedule([RebalanceShare(statuses, {}, limits, goals, held=held)], self.seen, Ceilings())
        assert orders.at_limit == held
        busy = self.carry_out(orders)
        assert busy or not fresh, f"nothing goes on: {held}"
        return False

    def carry_out(self, orders) -> bool:
        """In a random order; what is based on an outdated reading is refused, as the engine and Kafka do."""
        calls = [("cancel", tp, ()) for tp in orders.cancels] + [("elect", tp, ()) for tp in orders.elections]
        calls += [("alter", tp, to) for tp, to in orders.alters.items()]
        self.random.shuffle(calls)
        traffic = self.traffic
        for what, tp, to in calls:
            if self.seen.partitions[tp] != traffic.state(tp):
                continue
            self.sent.add(tp)
            if what == "cancel":
                traffic.flying.pop(tp)
            elif what == "elect":
                traffic.leaders[tp] = traffic.lists[tp][0]
            else:
                traffic.flying[tp] = to
                if set(to) <= set(traffic.lists[tp]):
                    traffic.complete(tp)
            traffic.check()
        flying = sorted(traffic.flying)
        for tp in self.random.sample(flying, self.random.randint(min(1, len(flying)), len(flying))):
            traffic.complete(tp)
            traffic.check()
        return bool(calls or flying)

    def arrive(self, direction: Direction, rounds: int) -> bool:
        """Whether it has arrived within this number of rounds. The first one reads anew."""
        self.seen = self.reading()
        return any(self.round(direction) for _ in range(rounds))


def carry_out(request: PlanRequest, made: Plan, random: Random) -> set[Direction]:
    """A part of the plan, or all of it, and back. No limit is exceeded at any moment, and both ways end.

    Returns the directions in which a partition had to wait for a limit.
    """
    execution = Execution(request, made, random)
    execution.traffic.check()
    execution.arrive(Direction.FORWARD, random.choice([3, 8, 1000]))
    assert execution.arrive(Direction.ROLLBACK, 1000)
    origins = {p.tp: p.current for p in made.partitions}
    assert all(execution.traffic.lists[tp] == origins[tp] for tp in origins)
    assert execution.arrive(Direction.FORWARD, 1000)
    return execution.held
