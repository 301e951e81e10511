"""The clusters that all end-to-end tests share, and where to look when one fails.

One Kafka cluster (five brokers in three racks, and a controller: about 2 GB) and one API server serve the whole
session; each test has topics of its own and puts back what else it changes.
"""

import uuid
from collections.abc import Callable, Iterator

import pytest

from e2e.bench.judge import Judge
from e2e.bench.kafka import KafkaCluster, racks_of
from e2e.bench.kube import KubeCluster, kube_cluster
from e2e.bench.operator import OperatorProcess
from e2e.world import World


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """Brokers 1 to 5 in racks r1, r2, r3, r1, r2."""
    # A follower may fetch 1 MB of each partition before the throttle sees it: in smaller bites a slow copy is slow.
    cluster = KafkaCluster(racks_of(range(1, 6)), properties={"replica.fetch.max.bytes": "65536"}).start()
    yield cluster
    cluster.close(keep_logs=_failed(request))


@pytest.fixture(scope="session")
def kube(request: pytest.FixtureRequest) -> Iterator[KubeCluster]:
    """The API server that `E2E_PROVIDER` selects."""
    cluster = kube_cluster().start()
    yield cluster
    cluster.close(keep_logs=_failed(request))


@pytest.fixture(scope="session")
def operator(kube: KubeCluster) -> Iterator[OperatorProcess]:
    """The operator, installed and running; a test that kills it starts it again."""
    process = OperatorProcess(kube).install().start()
    yield process
    process.close()


@pytest.fixture
def judge(kafka: KafkaCluster) -> Judge:
    """Kafka's own tools on the shared cluster."""
    return Judge(kafka)


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Names that no other test uses: `unique("orders")` is orders-3f2a91c4 or the like, the same within a test."""
    suffix = uuid.uuid4().hex[:8]
    return lambda name: f"{name}-{suffix}"


@pytest.fixture
def world(
    kafka: KafkaCluster, kube: KubeCluster, operator: OperatorProcess, unique: Callable[[str], str]
) -> Iterator[World]:
    """Topics and resources of one test, on the shared clusters."""
    world = World(kafka, kube, operator, unique)
    yield world
    world.close()


def _failed(request: pytest.FixtureRequest) -> bool:
    return request.session.testsfailed > 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Below a failed test, say where the logs of its clusters are."""
    report = yield
    if report.failed:
        for name, fixture in getattr(item, "funcargs", {}).items():
            if isinstance(fixture, KafkaCluster | KubeCluster):
                report.sections.append((f"logs of {name}", str(fixture.directory)))
            elif isinstance(fixture, OperatorProcess):
                report.sections.append((f"logs of {name}", str(fixture.log)))
    return report
