"""Where the origins of a large run are looked through when its rest ends."""

import threading

from tests.fakes.found_by_rounds import recorded
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.stopped_clock import NOON, StoppedClock

from kafka_rebalance.kafka.ports import ClusterInfo
from kafka_rebalance.model.plan import Certificate, Plan
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import BrokerId, replicas_of
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
    """The runs that go on, by name."""

    def __init__(self, clock):
        super().__init__(clock)
        self.ended = []

    async def end_rest(self, rebalance, theirs):
        assert not theirs
        self.ended.append(rebalance.name)


def resting(origins):
    metadata = {"name": "r", "namespace": "kafka", "uid": "u-1"}
    rebalance = Rebalance.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}})
    run = Run("u-1", "kafka", "r", "c", "run", "h", "p", NOON, started_at=NOON, rested=True)
    loaded = loaded_run_of(run, Plan((), Certificate(1, optimal=True)), "ref", {})
    return recorded(rebalance, run=run, was_read=True, loaded_run=loaded, origins=origins)


async def test_a_thread_looks_through_many_origins():
    """The rounds of all clusters share the event loop."""
    clock, admin = StoppedClock(), KafkaInMemory([1, 2], orders=[[1, 2]] * 1000)
    origins = OriginsLookedThrough(
        {
            tp: Origin(tp, state.topic_id, replicas_of(1, 2), BrokerId(1), log_dirs=((BrokerId(1), "/data"),))
            for tp, state in admin.states.items()
        }
    )
    lifecycle = EndedRests(clock)
    rest_ends = RestEnds(admin, lifecycle, Observer(admin, clock), Turns(clock), clock)
    await rest_ends.end([resting(origins)], ClusterInfo("c", admin.brokers))
    assert lifecycle.ended == ["kafka/r"]
    assert origins.threads
    assert threading.main_thread() not in origins.threads
