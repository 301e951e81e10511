"""Balance by rates, end to end: producers, sampler, Spark, operator; and what the brokers themselves count."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from e2e.bench.broker_metrics import BrokerMetrics
from e2e.bench.kafka import KafkaCluster
from e2e.bench.kube import KubeCluster
from e2e.bench.load import Traffic
from e2e.bench.operator import OperatorProcess
from e2e.lane import OPERATOR_NAMESPACE, WATCHED
from e2e.world import FAST, SMALL, World

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver, pytest.mark.spark, pytest.mark.campaign]

BROKERS = (1, 2, 3)
HOT = ((1, 2), (1, 3)) * 6
COLD = ((2, 1), (2, 3), (3, 1), (3, 2)) * 6
RECORD = 4096
HOT_RECORDS, COLD_RECORDS = 180, 36
"""Per second, of all partitions: each hot one gets ten times as much as a cold one."""
NOISE = 10
"""In percent of a share: the seconds in which the brokers were measured are not those of the samples."""
MEASURED_SECONDS = 20
EXAMPLE = yaml.safe_load((Path(__file__).parents[1] / "examples" / "even-load.yaml").read_text())["spec"]
RESOURCES = EXAMPLE["goals"]["load"]["resources"]
BAND = 10
"""As in the example."""
MEASURED = {"LeaderBytesIn": "produced", "BytesIn": "written"}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def operator(operator: OperatorProcess, kube: KubeCluster, lake: Path) -> Iterator[OperatorProcess]:
    """The operator of the lane, with the load models of the lake."""
    operator.stop()
    models = ("--load-models", str(lake / "models"))
    with_models = OperatorProcess(kube, *WATCHED, *models, namespace=OPERATOR_NAMESPACE).start()
    yield with_models
    with_models.stop()
    operator.start()


@pytest.fixture
def metrics(kafka: KafkaCluster) -> Iterator[BrokerMetrics]:
    found = BrokerMetrics(kafka)
    yield found
    found.close()


def peak(rates: Mapping[int, float]) -> float:
    """The highest rate of a broker, in percent of its share of the total."""
    return 100 * max(rates[broker] for broker in BROKERS) * len(BROKERS) / sum(rates[broker] for broker in BROKERS)


class TestRates:
    def test_a_hot_broker_is_relieved(
        self, world: World, kafka: KafkaCluster, lake: Path, metrics: BrokerMetrics
    ) -> None:
        """Replicas and leaders are even, and yet nearly everything is written to one broker: examples/even-load.yaml.

        Afterwards no broker gets more than the band allows, by the brokers' own counters, as the plan has predicted.
        Samples of less than half a minute are used only where the resource says so. Nothing moves before approval.
        """
        topic = world.topic("hot", [*HOT, *COLD], SMALL)
        hot = Traffic(kafka, partitions=[(topic, n) for n in range(len(HOT))], rate=HOT_RECORDS, record_bytes=RECORD)
        rest = [(topic, len(HOT) + n) for n in range(len(COLD))]
        cold = Traffic(kafka, partitions=rest, rate=COLD_RECORDS, record_bytes=RECORD)
        traffic = [hot.start(), cold.start()]
        sample = ("pipeline", "sample", "--bootstrap-servers", kafka.bootstrap_servers, "--lake", str(lake))
        before = metrics.while_(lambda: world.command(*sample, "--interval", "4s", "--count", "6"))
        world.command("pipeline", "load-model", "--lake", str(lake))
        assert peak(before.produced) > 230
        assert peak(before.written) > 125

        include = {"include": list(BROKERS)}
        chosen = {key: EXAMPLE[key] for key in ("goals", "approval")}
        rebalance = world.rebalance("hot", topic, throttle=FAST, brokers=include, **chosen)
        rebalance.wait_state("RatesUnknown")
        short = [{**resource, "minimumCoverage": "15s"} for resource in RESOURCES]
        rebalance.patch(goals={"load": {"resources": short}})
        status = rebalance.wait_state("AwaitingApproval", timeout=900)  # the first plan by load compiles the search
        rebalance.patch(approval={"planHash": status["plan"]["hash"]})
        rebalance.wait_for("Succeeded")
        after = metrics.over(MEASURED_SECONDS)
        reports = [pair.stop() for pair in traffic]

        assert peak(after.produced) <= 100 + BAND + NOISE
        assert peak(after.written) <= 100 + BAND + NOISE
        plan = rebalance.status["plan"]
        assert plan["dataSource"] == "LoadModel"
        assert plan["load"]["outside"] == []
        assert [row["resource"] for row in plan["load"]["resources"]] == [*MEASURED]
        for row in plan["load"]["resources"]:
            measured = MEASURED[row["resource"]]
            assert row["peakBefore"] == pytest.approx(peak(getattr(before, measured)), abs=NOISE)
            assert row["peakAfter"] == pytest.approx(peak(getattr(after, measured)), abs=NOISE)
        held = [broker for state in world.partitions(topic).values() for broker in state.replicas]
        assert [held.count(broker) for broker in BROKERS] == [24, 24, 24]
        assert all(report.clean for report in reports), reports
        world.assert_tidy()
