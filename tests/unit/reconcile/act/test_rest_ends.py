"""What is read before a rest ends, what keeps the run at rest, and where many origins are looked through."""

import threading
from datetime import timedelta

from tests.fakes.found_by_rounds import recorded
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.stopped_clock import NOON, StoppedClock

from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.ports import ClusterInfo
from kafka_rebalance.model.plan import Certificate, Plan
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.problems import Problems
from kafka_rebalance.reconcile.act.rest_ends import RestEnds
from kafka_rebalance.reconcile.act.turns import Turns
from kafka_rebalance.reconcile.observe.observer import Observer
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import loaded_run_of


class OriginsLookedThrough(dict):
    """Notes the threads that look through it."""

    def __init__(self, origins):
        super().__init__(origins)
        self.threads = set()

    def _noted(self, values):
        self.threads.add(threading.current_thread())
        return values

    def __iter__(self):
        return self._noted(super().__iter__())

    def keys(self):
        return self._noted(super().keys())

    def items(self):
        return self._noted(super().items())


class EndedRests(Problems):
    """The runs that go on, by name, each with the partitions that it leaves to others."""

    def __init__(self, clock):
        super().__init__(clock)
        self.ended = {}

    async def end_rest(self, rebalance, theirs):
        self.ended[rebalance.name] = {str(row.tp) for row in theirs}


def resting(origins):
    metadata = {"name": "r", "namespace": "kafka", "uid": "u-1"}
    rebalance = Rebalance.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}})
    run = Run("u-1", "kafka", "r", "c", "run", "h", "p", NOON, started_at=NOON, rested=True)
    loaded = loaded_run_of(run, Plan((), Certificate(1, optimal=True)), "ref", {})
    return recorded(rebalance, run=run, was_read=True, loaded_run=loaded, origins=origins)


class Rounds:
    """A run with an origin of each partition rests; each round comes after the pause that a refusal asks for."""

    def __init__(self, kafka):
        self.kafka, self.clock = kafka, StoppedClock()
        self.lifecycle, self.observer = EndedRests(self.clock), Observer(kafka, self.clock)
        self.rest_ends = RestEnds(kafka, self.lifecycle, self.observer, Turns(self.clock), self.clock)
        self.rebalance = resting(origins_in(kafka))

    async def round(self):
        """The reason for which the run stays at rest; None: it goes on."""
        await self.rest_ends.end([self.rebalance], ClusterInfo("c", self.kafka.brokers))
        self.clock.at += timedelta(seconds=20)
        return None if self.lifecycle.ended else self.rebalance.memory.problem.error.reason


def origins_in(kafka):
    return {
        tp: Origin(tp, state.topic_id, replicas_of(1, 2), BrokerId(1), log_dirs=((BrokerId(1), "/data"),))
        for tp, state in kafka.states.items()
    }


async def test_everything_is_read_anew():
    """Others have begun to move a partition since it was last read, which is not due again yet."""
    rounds = Rounds(KafkaInMemory([1, 2, 3], orders=[[1, 2]] * 2))
    await rounds.observer.everything()
    rounds.kafka.slow = {3}
    await rounds.kafka.alter_reassignments({TopicPartition("orders", 0): replicas_of(1, 3)})
    await rounds.round()
    assert rounds.lifecycle.ended == {"kafka/r": {"orders-0"}}


async def test_a_live_broker_that_does_not_describe_its_log_dirs():
    """It may copy a replica for others."""
    rounds = Rounds(KafkaInMemory([1, 2], orders=[[1, 2]]))
    rounds.kafka.dirs_denied = Transient(Reason.KAFKA_UNREACHABLE, "no answer")
    assert await rounds.round() == Reason.LOG_DIRS_UNKNOWN
    rounds.kafka.dirs_denied = None
    assert await rounds.round() is None


class TestTopicsThatDoNotExist:
    """A broker may lag: five readings in a row have to lack the topic."""

    async def readings(self, *readings):
        """Each is (topic that does not exist, whether the log dirs are known); the reasons to stay at rest."""
        kafka = KafkaInMemory([1, 2], orders=[[1, 2]], payments=[[1, 2]])
        rounds, states, reasons = Rounds(kafka), kafka.states, []
        for absent, known in readings:
            kafka.states = {tp: state for tp, state in states.items() if tp.topic != absent}
            kafka.dirs_denied = None if known else Transient(Reason.KAFKA_UNREACHABLE, "no answer")
            reasons.append(await rounds.round())
        return reasons

    async def test_five_in_a_row(self):
        assert await self.readings(*[("orders", True)] * 5) == [Reason.METADATA_MISSING] * 4 + [None]

    async def test_another_topic_in_between(self):
        found = await self.readings(*[("orders", True)] * 4, ("payments", True), ("orders", True))
        assert found == [Reason.METADATA_MISSING] * 6

    async def test_one_with_the_topic_that_keeps_the_run_at_rest_for_another_reason(self):
        found = await self.readings(*[("orders", True)] * 4, ("", False), ("orders", True))
        assert found[4:] == [Reason.LOG_DIRS_UNKNOWN, Reason.METADATA_MISSING]


async def test_a_thread_looks_through_many_origins():
    """The rounds of all clusters share the event loop."""
    clock, admin = StoppedClock(), KafkaInMemory([1, 2], orders=[[1, 2]] * 1000)
    origins = OriginsLookedThrough(origins_in(admin))
    lifecycle = EndedRests(clock)
    rest_ends = RestEnds(admin, lifecycle, Observer(admin, clock), Turns(clock), clock)
    await rest_ends.end([resting(origins)], ClusterInfo("c", admin.brokers))
    assert lifecycle.ended == {"kafka/r": set()}
    assert origins.threads
    assert threading.main_thread() not in origins.threads
