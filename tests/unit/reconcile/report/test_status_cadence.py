"""How often statuses are written while replicas are copied."""

from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api import resource_status, throttle_resource
from kafka_rebalance.api.v1alpha1 import Condition, KafkaReassignmentThrottleStatus, KafkaRebalanceStatus
from kafka_rebalance.kafka.ports import Answers, LogDir
from kafka_rebalance.kube.ledger_store import LedgerStore
from kafka_rebalance.reconcile.report.status_cadence import FIGURES_EVERY, due

SOON, LATER = NOON + FIGURES_EVERY / 2, NOON + FIGURES_EVERY


def ready(reason="Rebalancing", message="", status="False"):
    return Condition(
        type="Ready", status=status, reason=reason, message=message, observed_generation=1, last_transition_time=NOON
    )


def planned(plan_hash="sha256:1", eta="5 min"):
    counts = {"partitions": 1, "replica_moves": 1, "lower_bound": 1, "leader_moves": 0, "data_to_move": 1}
    return resource_status.PlanStatus(hash=plan_hash, optimal=True, eta=eta, **counts)


BEFORE = KafkaRebalanceStatus(cluster_id="c", plan=planned(), conditions=(ready(),))


class TestDue:
    @pytest.mark.parametrize(
        "change",
        [
            {"conditions": (ready("Stalled"),)},
            {"conditions": (ready(status="True"),)},
            {"observed_generation": 2},
            {"plan": planned("sha256:2")},
            {"skipped_count": 1},
        ],
    )
    def test_transitions_at_once(self, change):
        assert due(BEFORE, BEFORE.model_copy(update=change), NOON, SOON)

    @pytest.mark.parametrize(
        "change",
        [
            {"conditions": (ready(message="NoLeader (7)"),)},
            {"display": resource_status.Display(progress="7%")},
            {"current_batch_size": 7},
            {"plan": planned(eta="4 min")},
        ],
    )
    def test_figures_every_few_seconds(self, change):
        after = BEFORE.model_copy(update=change)
        assert not due(BEFORE, after, NOON, SOON)
        assert due(BEFORE, after, NOON, LATER)
        assert due(BEFORE, after, LATER, NOON), "the clock was set back"

    def test_the_measured_rates_of_a_throttle(self):
        before = KafkaReassignmentThrottleStatus()
        after = before.model_copy(update={"brokers": (throttle_resource.ThrottledBroker(id=1),)})
        assert not due(before, after, NOON, SOON)
        assert due(before, after, NOON, LATER)

    def test_nothing_new(self):
        assert not due(BEFORE, BEFORE, NOON, LATER)


class Copying(KafkaInMemory):
    """Copies grow with each reading of the sizes."""

    grown = 0

    async def log_dirs(self, brokers):
        self.grown += 10**8
        held = {
            b: {tp: self.grown if b in s.adding else self.size for tp, s in self.states.items() if b in s.replicas}
            for b in brokers
        }
        return Answers({b: (LogDir("/data", sizes),) for b, sizes in held.items()})


class _Ledgers(KubeInMemory):
    """``lists``: how often ConfigMaps were listed."""

    lists = 0

    async def list_config_map_metadata(self, labels):
        self.lists += 1
        return await super().list_config_map_metadata(labels)


class TestRun:
    """Two minutes of copies; one arrives every two seconds."""

    @pytest.fixture
    async def operator(self):
        kafka = Copying([1, 2, 3, 4, 5, 6], size=10**12, orders=[[1, 2, 3]] * 60)
        operator = OperatorInMemory(kafka)
        kafka.slow = {4, 5, 6}
        operator.apply(
            brokers={"include": [4, 5, 6]}, throttle={"leaderRate": "50Mi", "followerRate": "50Mi"}, execution={}
        )
        await operator.until_true(lambda: kafka.flying)
        return operator

    async def test_statuses(self, operator):
        """Not one for each round: the API server has more to do than that."""
        before, seconds, arrive_at = len(operator.kube.told), 0.0, 2.0
        while seconds < 120:
            pause = await operator.engine.tick()
            operator.clock.at += timedelta(seconds=pause)
            seconds += pause
            if seconds >= arrive_at:
                operator.kafka._complete(min(tp for tp, state in operator.kafka.states.items() if state.in_flight))
                arrive_at += 2.0
        assert operator.state == "Rebalancing"
        assert 10 <= len(operator.kube.told) - before <= 120 / FIGURES_EVERY.total_seconds() + 2

    async def test_the_last_figures(self, operator):
        """The final status of the run has the withheld changes."""
        operator.kafka.slow = set()
        operator.kafka.arrive()
        await operator.until("Succeeded")
        assert operator.status["progress"]["percent"] == 100
        assert operator.status["progress"]["replicaMoves"] == {"total": 180, "completed": 180}

    async def test_the_ledger(self):
        """It is written when it has changed, and nothing is listed for that but once."""
        kube = _Ledgers()
        store = LedgerStore(kube)
        for number in range(10):
            await store.save("c", {"number": number})
        assert kube.lists == 1
        assert await store.load("c") == {"number": 9}
