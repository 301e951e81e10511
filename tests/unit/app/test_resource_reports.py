"""The reports that the operator serves: from the API server alone, with bounded memory."""

import pytest
from tests.fakes.kube_in_memory import KubeInMemory
from tests.unit.cli.commands.resource_runs import RUNNING, body, plan, status
from tests.unit.cli.commands.status_runs import NOW, UID

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.app import resource_reports
from kafka_rebalance.app.resource_reports import ResourceReports
from kafka_rebalance.kube.api_errors import Forbidden, NotFound
from kafka_rebalance.kube.store import PlanStore
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.topology import TopicPartition, replicas_of


def plan_of(*partitions):
    planned = (PlannedPartition(TopicPartition("t", n), replicas_of(1, 2), replicas_of(3, 2)) for n in partitions)
    return Plan(tuple(planned), Certificate(0, optimal=False))


class Reads(KubeInMemory):
    """``reads`` counts the reads of ConfigMaps."""

    reads = 0

    async def get_config_map(self, name):
        self.reads += 1
        return await super().get_config_map(name)


@pytest.fixture
def kube():
    return Reads()


async def planned(kube, made, **more):
    """The resource runs, with this plan."""
    await PlanStore(kube).save(UID, made.hash, "c1", made, NOW)
    kube.create(REBALANCES, body(reported=status(RUNNING, plan(made.hash, **more))))
    kube.reads = 0


def reports(kube, *namespaces):
    return ResourceReports(kube, namespaces, lambda: NOW)


class TestReport:
    async def test_of_a_run(self, kube):
        """It shows the partitions, because users who may read the resource may see its plan."""
        await planned(kube, plan_of(0, 1))
        report = await reports(kube).of(("kafka", "r"))
        assert report.title == "KafkaRebalance kafka/r"
        assert report.state == "Rebalancing"
        assert [str(row.tp) for row in report.partitions] == ["t-0", "t-1"]
        assert {row.broker: tuple(row.replicas) for row in report.brokers} == {1: (2, 0), 2: (2, 2), 3: (0, 2)}

    async def test_a_plan_is_read_once(self, kube):
        await planned(kube, plan_of(0))
        served = reports(kube)
        first = await served.of(("kafka", "r"))
        read = kube.reads
        assert read > 0
        second = await served.of(("kafka", "r"))
        assert kube.reads == read
        assert second.partitions is first.partitions

    async def test_another_plan(self, kube):
        """As after an edit of the spec."""
        await planned(kube, plan_of(0))
        served = reports(kube)
        await served.of(("kafka", "r"))
        await planned(kube, plan_of(5))
        assert [str(row.tp) for row in (await served.of(("kafka", "r"))).partitions] == ["t-5"]

    async def test_without_a_plan(self, kube):
        kube.create(REBALANCES, body())
        report = await reports(kube).of(("kafka", "r"))
        assert (report.state, report.partitions) == ("Not seen by an operator yet", None)

    async def test_a_plan_that_is_not_stored(self, kube):
        """The status still is shown; the plan is looked for again."""
        kube.create(REBALANCES, body(reported=status(RUNNING, plan())))
        assert (await reports(kube).of(("kafka", "r"))).partitions is None


class TestBounds:
    async def test_a_large_plan(self, kube, monkeypatch):
        """It is not even read; the page says how to see it."""
        monkeypatch.setattr(resource_reports, "MOST_PARTITIONS", 2)
        await planned(kube, plan_of(0, 1, 2), partitions=3)
        report = await reports(kube).of(("kafka", "r"))
        assert report.partitions is None
        assert kube.reads == 0
        assert "kafka-rebalance report r -n kafka -o report.html" in [fact.text for fact in report.facts]

    async def test_a_plan_with_many_replicas(self, kube, monkeypatch):
        """Servers may claim 100 for each partition: the copies between all pairs of brokers took 318 MiB. It is read
        once."""
        monkeypatch.setattr(resource_reports, "MOST_REPLICAS", 11, raising=False)
        await planned(kube, plan_of(0, 1, 2))
        served = reports(kube)
        report = await served.of(("kafka", "r"))
        assert (report.partitions, report.flows) == (None, ())
        assert "kafka-rebalance report r -n kafka -o report.html" in [fact.text for fact in report.facts]
        read = kube.reads
        assert (await served.of(("kafka", "r"))).facts == report.facts
        assert kube.reads == read

    async def test_the_number_of_plans(self, kube, monkeypatch):
        monkeypatch.setattr(resource_reports, "_MOST_PLANS", 2)
        served = reports(kube)
        for n in range(5):
            await planned(kube, plan_of(n))
            await served.of(("kafka", "r"))
        assert len(served._contents) == 2


class TestMissing:
    async def test_no_such_resource(self, kube):
        with pytest.raises(NotFound, match="there is no KafkaRebalance kafka/r"):
            await reports(kube).of(("kafka", "r"))

    async def test_in_a_namespace_that_is_not_watched(self, kube):
        """An operator of single namespaces shows no others, even if its account may read them."""
        kube.create(REBALANCES, body())
        assert await reports(kube, "kafka").of(("kafka", "r"))
        with pytest.raises(NotFound):
            await reports(kube, "payments").of(("kafka", "r"))

    async def test_what_the_operator_may_not_read(self, kube, monkeypatch):
        async def refused(*_):
            raise Forbidden("the operator's account may not")

        monkeypatch.setattr(kube, "get", refused)
        with pytest.raises(NotFound, match="in a namespace that this operator watches"):
            await reports(kube).of(("kafka", "r"))
