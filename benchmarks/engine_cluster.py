"""A Kafka cluster and an API server in memory for the benchmark of rounds: answers are indexed, counted and timed.

The cost of these fakes is measured separately and subtracted: each call runs between two returns to the event loop, and
`Meter` attributes these slices of the loop to it. As from the adapters, every answer has new objects, which share equal
lists, but for partitions that are as in the last answer with all of them.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tests.fakes.kafka_in_memory import KafkaInMemory

from kafka_rebalance.kafka.last_answers import LastAnswers
from kafka_rebalance.kafka.ports import Answers, LogDir, Reassignment
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition

PER_TOPIC = 100
REPLICAS = 3
_USABLE = 10**15

# Requests on the wire for one call of the port, and whom they are sent to. The adapter lists the reassignments before
# it reads partitions and before it alters any, and the topics before it reads all of them.
PER_BROKER = {"broker_configs": "config", "alter_broker_configs": "config change", "log_dirs": "log dirs"}
CLUSTER_REQUESTS = {"describe_partitions": 2, "alter_reassignments": 2, "authorized_operations": 2}


class Meter:
    """Slices of the event loop, in CPU seconds of its thread, without those of the servers in memory."""

    def __init__(self) -> None:
        self.slices: list[float] = []
        self.fake_seconds = 0.0
        self.requests: Counter[str] = Counter()
        self.per_broker: Counter[tuple[str, Any]] = Counter()
        self._fake = False

    def watch(self) -> None:
        """Time every callback of the event loops of this process from now on."""
        meter, run = self, asyncio.Handle._run  # noqa: SLF001 - the only place where all callbacks pass

        def timed(handle: asyncio.Handle) -> None:
            meter._fake, began = False, time.thread_time()
            run(handle)
            if not meter._fake:
                meter.slices.append(time.thread_time() - began)

        asyncio.Handle._run = timed  # noqa: SLF001

    def clear(self) -> None:
        """Forget what was measured so far."""
        self.slices, self.fake_seconds = [], 0.0
        self.requests, self.per_broker = Counter(), Counter()

    async def answer(self, call: Any, *args: Any, **more: Any) -> Any:
        """What the server answers, in a slice of its own."""
        await asyncio.sleep(0)
        self._fake, began = True, time.thread_time()
        try:
            return await call(*args, **more)
        finally:
            self.fake_seconds += time.thread_time() - began
            await asyncio.sleep(0)


class Metered:
    """The server behind the meter."""

    def __init__(self, server: Any, meter: Meter, *, kind: str) -> None:
        self._server, self._meter, self._kind = server, meter, kind

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._server, name)
        if not asyncio.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **more: Any) -> Any:
            self._count(name, args)
            answer = await self._meter.answer(found, *args, **more)
            if name == "describe_partitions":
                self._meter.requests["described"] += len(answer)
            return answer

        return call

    def _count(self, name: str, args: tuple[Any, ...]) -> None:
        meter = self._meter
        if self._kind == "kafka" and name in PER_BROKER:
            meter.per_broker.update((PER_BROKER[name], broker) for broker in args[0])
        elif self._kind == "kafka":
            everything = name == "describe_partitions" and (not args or args[0] is None)
            was_listed = name == "describe_partitions" and len(args) > 1
            meter.requests["cluster"] += CLUSTER_REQUESTS.get(name, 1) + everything - was_listed
        else:
            meter.requests["API server"] += 1


class LargeCluster(KafkaInMemory):
    """``partitions`` with three replicas on the first half of the brokers; the other half is empty.

    Copies stay in flight until ``advance`` completes the oldest ones.
    """

    def __init__(self, partitions: int, brokers: int) -> None:
        super().__init__(range(brokers))
        old, self._of_topic = brokers // 2, {}
        self._flying: dict[TopicPartition, None] = {}
        self._last_answers = LastAnswers()
        self.held: dict[BrokerId, dict[TopicPartition, int]] = {b: {} for b in self.brokers}
        for number in range(partitions // PER_TOPIC):
            name = f"topic-{number:05d}"
            rows = [[(number * 7 + p + place * 3) % old for place in range(REPLICAS)] for p in range(PER_TOPIC)]
            self.create(name, rows)
            self._of_topic[name] = [TopicPartition(name, p) for p in range(PER_TOPIC)]
        for at, (tp, state) in enumerate(self.states.items()):
            self.sizes[tp] = 10**6 + at * 7919 % 10**9
            for broker in state.replicas:
                self.held[broker][tp] = self.sizes[tp]
        self.slow = set(self.brokers)

    async def describe_partitions(self, topics: Iterable[str] | None = None, _listed: Any = None) -> Answers:
        names = self._of_topic if topics is None else [t for t in topics if t in self._of_topic]
        share, before, found = dict[Any, Any]().setdefault, self._last_answers.newest, Answers()
        for tp in (tp for name in names for tp in self._of_topic[name]):
            new = _new(self.states[tp], share)
            old = before.get(tp)
            state = old if old == new else new
            found[state.tp] = state
        if topics is None:
            self._last_answers.note(found)
        return found

    async def topic_ids(self, topics: Iterable[str] | None = None) -> Answers:
        names = self._of_topic if topics is None else [t for t in topics if t in self._of_topic]
        return Answers({name: self.states[TopicPartition(name, 0)].topic_id for name in names})

    async def list_reassignments(self) -> dict[TopicPartition, Reassignment]:
        states = map(self.states.__getitem__, self._flying)
        return {state.tp: Reassignment(state.replicas, state.adding, state.removing) for state in states}

    async def log_dirs(self, brokers: Iterable[BrokerId]) -> Answers:
        there = (b for b in brokers if b in self.brokers)
        return Answers({b: (LogDir("/data", dict(self.held[b]), {}, 2 * _USABLE, _USABLE),) for b in there})

    @property
    def in_flight(self) -> int:
        """How many partitions are being reassigned."""
        return len(self._flying)

    def advance(self, count: int) -> None:
        """The oldest copies are in sync."""
        for tp in list(self._flying)[:count]:
            self._complete(tp)

    def die(self, broker: BrokerId) -> None:
        """The broker leaves the cluster and every ISR."""
        del self.brokers[broker]
        for tp, state in self.states.items():
            if broker in state.isr:
                isr = state.isr - {broker}
                leader = next((b for b in state.replicas if b in isr), None) if state.leader == broker else state.leader
                self.states[tp] = replace(state, isr=isr, leader=leader)

    def _alter(self, tp: TopicPartition, to: Any) -> Any:
        code = super()._alter(tp, to)
        self.altered.clear()
        state = self.states[tp]
        if state.in_flight:
            self._flying[tp] = None
            for broker in state.adding:
                self.held[broker][tp] = self.sizes[tp] // 2
        else:
            self._flying.pop(tp, None)
        return code

    def _complete(self, tp: TopicPartition) -> None:
        state = self.states[tp]
        super()._complete(tp)
        self._flying.pop(tp, None)
        for broker in state.adding:
            self.held[broker][tp] = self.sizes[tp]
        for broker in state.removing:
            self.held[broker].pop(tp, None)


def _new(state: PartitionState, share: Any) -> PartitionState:
    tp = TopicPartition(state.tp.topic, state.tp.partition)
    replicas, isr = (*state.replicas,), frozenset([*state.isr])
    replicas, isr = share(replicas, replicas), share(isr, isr)
    return PartitionState(tp, state.topic_id, replicas, isr, state.leader, state.adding, state.removing)
