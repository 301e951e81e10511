"""Runs that move replicas through the fluid network: with the engine's decisions, and with other strategies.

Nothing here reads a clock or a server. The engine decides in rounds of half a second; the other strategies see a
completed copy at once, except for the batches and the fixed caps.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from benchmarks.schedule_network import Network
from kafka_rebalance.execution.limits import Ceilings, Limits
from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, MovePhase, Observation, judge
from kafka_rebalance.execution.ready_calls import ReadyCalls
from kafka_rebalance.execution.schedule import RebalanceShare, schedule
from kafka_rebalance.execution.steps import Alter, Present, StepRules, all_steps
from kafka_rebalance.execution.tally import Tally
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, PartitionState, Replicas, TopicPartition

ROUND_SECONDS = 0.5
PER_BROKER = 10
"""Cruise Control's default number of concurrent movements into or out of a broker."""
CHECK_SECONDS = 10.0
"""Cruise Control's default pause between two looks at what has completed."""


@dataclass(frozen=True)
class Copy:
    """Copies that one step of a partition makes at the same time, and whether its call counts towards L."""

    source: int
    destinations: Replicas
    leads: bool


@dataclass(frozen=True)
class Move:
    """What is moved: one partition."""

    tp: TopicPartition
    origin: Replicas
    target: Replicas
    size: int

    def copies(self, parallel_replicas: int) -> list[Copy]:
        """The copies of its steps, one step after the other, as the rules of KIP-435 give them."""
        found, at = list[Copy](), Present(self.origin, frozenset(self.origin), self.origin[0])
        for step in all_steps(at, self.target, StepRules(parallel_replicas)):
            first = step.calls[0]
            if isinstance(first, Alter) and first.until_in_sync:
                assert at.leader is not None
                found.append(Copy(at.leader, first.until_in_sync, leads=first.replicas[0] != at.leader))
            leader = step.replicas[0] if step.replicas[0] == self.target[0] else at.leader
            leader = leader if leader in step.replicas else step.replicas[0]
            at = Present(step.replicas, frozenset(step.replicas), leader)
        return found


@dataclass(frozen=True)
class Problem:
    """Moves between brokers 0 to ``brokers`` - 1 at ``rate`` bytes per second on each side, within these limits."""

    brokers: int
    moves: Sequence[Move]
    rate: float
    limits: Limits

    @cached_property
    def copies(self) -> Sequence[tuple[Move, Sequence[Copy]]]:
        """The copies of each move, under R."""
        return [(move, move.copies(self.limits.parallel_replicas)) for move in self.moves]

    @cached_property
    def bounds(self) -> Mapping[str, float]:
        """Lower bounds of the seconds of any schedule of these steps, by cause."""
        into, out_of, chains, leading = Counter[int](), Counter[int](), list[float](), 0.0
        for move, copies in self.copies:
            chain = 0.0
            for copy in copies:
                out_of[copy.source] += len(copy.destinations) * move.size
                into.update(dict.fromkeys(map(int, copy.destinations), move.size))
                took = len(copy.destinations) * move.size / self.rate
                chain += took
                leading += copy.leads * took
            chains.append(chain)
        limits = self.limits
        return {
            "in": max(into.values(), default=0) / self.rate,
            "out": max(out_of.values(), default=0) / self.rate,
            "chain": max(chains, default=0.0),
            "P": sum(chains) / limits.parallel_partitions,
            "L": leading / limits.parallel_leader_movements,
        }

    @property
    def bound(self) -> float:
        """The highest of the bounds."""
        return max(self.bounds.values())

    def network(self) -> Network:
        """The network at rest."""
        return Network(self.brokers, self.rate)


def everything_at_once(problem: Problem) -> float:
    """Seconds if all partitions are sent their targets in one request."""
    network = problem.network()
    network.start_all(
        (move.tp, move.origin[0], new, move.size)
        for move in problem.moves
        if (new := [b for b in move.target if b not in move.origin])
    )
    while not network.idle:
        network.run(network.next_arrival * 1.002)
    return network.now


def in_batches(problem: Problem) -> float:
    """Seconds if KIP-435 is taken literally: the next batch is sent when the one before is complete."""
    network, limits = problem.network(), problem.limits
    left = {move.tp: (move, list(copies)) for move, copies in problem.copies if copies}
    while left:
        batch, leading = list[TopicPartition](), 0
        for tp, (_, copies) in left.items():
            if len(batch) == limits.parallel_partitions:
                break
            if not copies[0].leads or leading < limits.parallel_leader_movements:
                leading += copies[0].leads
                batch.append(tp)
        for tp in batch:
            move, copies = left[tp]
            copy = copies.pop(0)
            network.start(tp, copy.source, copy.destinations, move.size)
            if not copies:
                del left[tp]
        while not network.idle:
            network.run(network.next_arrival)
    return network.now


def with_fixed_caps(problem: Problem) -> float:
    """Seconds with a number of movements per broker, all replicas of a partition together, in the order of the plan."""
    network, busy = problem.network(), Counter[int]()
    waiting = [move for move in problem.moves if set(move.target) - set(move.origin)]
    begun: dict[TopicPartition, set[int]] = {}
    while waiting or not network.idle:
        rest = []
        for move in waiting:
            ends = set(map(int, move.target)) ^ set(map(int, move.origin))
            if any(busy[b] >= PER_BROKER for b in ends):
                rest.append(move)
                continue
            busy.update(ends)
            begun[move.tp] = ends
            network.start(move.tp, move.origin[0], [b for b in move.target if b not in move.origin], move.size)
        waiting = rest
        for tp in network.run(_next(network.now, network.next_arrival, CHECK_SECONDS)):
            busy.subtract(begun[tp])  # type: ignore[index]
    return network.now


def by_the_engine(problem: Problem) -> float:
    """Seconds with the operator's decisions, in rounds; the last call of each partition included."""
    return Engine(problem).run()


class Engine:
    """The decisions of one rebalance: the statuses, what they add up to, and which calls are sent."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._network = problem, problem.network()
        brokers = {BrokerId(b): Broker(BrokerId(b)) for b in range(problem.brokers)}
        states = {m.tp: PartitionState(m.tp, "", m.origin, frozenset(m.origin), m.origin[0]) for m in problem.moves}
        topics = {move.tp.topic for move in problem.moves}
        self._seen = Observation(ClusterState("c", brokers, states), dict.fromkeys(topics, 1))
        self._states = states
        self._moves = {m.tp: PartitionMove(m.tp, "", m.origin, m.origin, m.target, m.size) for m in problem.moves}
        self._sizes = {move.tp: move.size for move in problem.moves}
        self._goals = {move.tp: move.target for move in problem.moves}
        self._in_flight: set[TopicPartition] = set()
        r = problem.limits.parallel_replicas
        self._statuses = {tp: judge(move, self._seen, Direction.FORWARD, r) for tp, move in self._moves.items()}
        self._few = {tp: s for tp, s in self._statuses.items() if s.phase is not MovePhase.READY or s.started}
        self._ready = ReadyCalls.of(self._statuses, states, self._sizes)
        self._tally = Tally.of(self._moves.values(), self._statuses, states, Direction.FORWARD, r)

    def run(self) -> float:
        """Seconds until every partition is done."""
        network = self._network
        while any(status.phase is not MovePhase.DONE for status in self._few.values()) or self._ready.queues:
            sent = set(self._send())
            if not sent and network.idle:
                raise RuntimeError(f"nothing moves: {next(iter(self._few.values()), None)}")
            without_copy = sent - self._in_flight
            until = network.now if without_copy else network.next_arrival
            arrived = network.run(_next(network.now, until, ROUND_SECONDS))
            for tp in arrived:
                self._arrive(tp)  # type: ignore[arg-type]
            self._judge(sent.union(arrived))  # type: ignore[arg-type]
        return network.now

    def _send(self) -> Iterator[TopicPartition]:
        share = RebalanceShare(
            self._statuses, self._sizes, self._problem.limits, goals=self._goals, few=self._few, ready=self._ready,
            coming=self._tally.coming, waiting=self._tally.waiting,
        )  # fmt: skip
        (orders,) = schedule([share], self._seen.cluster, Ceilings(), in_flight=self._in_flight)
        for tp, replicas in orders.alters.items():
            self._alter(tp, replicas)
            yield tp
        for tp in orders.elections:
            self._states[tp] = replace(self._states[tp], leader=self._states[tp].replicas[0])
            yield tp

    def _alter(self, tp: TopicPartition, to: Replicas) -> None:
        state = self._states[tp]
        new = tuple(b for b in to if b not in state.replicas)
        if new:
            assert state.leader is not None
            self._states[tp] = replace(state, replicas=to, adding=new)
            self._in_flight.add(tp)
            self._network.start(tp, state.leader, new, self._sizes[tp])
            return
        # With the election that the engine sends after a call that puts another replica first.
        self._states[tp] = replace(state, replicas=to, isr=frozenset(to), leader=to[0])

    def _arrive(self, tp: TopicPartition) -> None:
        state = self._states[tp]
        self._states[tp] = replace(state, isr=frozenset(state.replicas), adding=())
        self._in_flight.discard(tp)

    def _judge(self, changed: set[TopicPartition]) -> None:
        r = self._problem.limits.parallel_replicas
        for tp in changed:
            status = self._statuses[tp] = judge(self._moves[tp], self._seen, Direction.FORWARD, r)
            self._few.pop(tp, None)
            if status.phase is not MovePhase.DONE:
                self._few[tp] = status
        self._ready = self._ready.updated(changed, self._statuses, self._states)
        self._tally = self._tally.updated([self._moves[tp] for tp in changed], self._statuses, self._states)


def _next(now: float, earliest: float, pause: float) -> float:
    """The first check from ``earliest`` on, if there is one after each ``pause`` from now on."""
    return now + pause * max(1, -int(-(earliest - now) // pause))
