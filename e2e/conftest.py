"""The clusters of the end-to-end tests, and where to look when one fails.

Every worker is a lane: a Kafka cluster (five brokers in three racks, and a controller: about 2 GB) and an operator
serve all its tests; each test has topics of its own and puts back what else it changes. Lanes run side by side and
share nothing but the API server. On one cluster tests could not: the lowest of all throttles holds for a broker.
"""

import uuid
from collections.abc import Callable, Iterator

import pytest
from tests.workers import Kind, unit

from e2e.bench.judge import Judge
from e2e.bench.kafka import KafkaCluster, racks_of
from e2e.bench.kube import KubeCluster
from e2e.bench.operator import OperatorProcess
from e2e.bench.sharing import locked
from e2e.lane import NAMESPACE, OPERATOR_NAMESPACE, WATCHED
from e2e.world import World


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """Brokers 1 to 5 in racks r1, r2, r3, r1, r2."""
    # A follower may fetch 1 MB of each partition before the throttle sees it: in smaller bites a slow copy is slow.
    cluster = KafkaCluster(racks_of(range(1, 6)), properties={"replica.fetch.max.bytes": "65536"}).start()
    yield cluster
    cluster.close(keep_logs=request.session.testsfailed > 0)


@pytest.fixture(scope="session")
def kube(api_server: KubeCluster) -> KubeCluster:
    """The API server, with the lane's namespace."""
    api_server.apply(f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n")
    return api_server


@pytest.fixture(scope="session")
def operator(kube: KubeCluster) -> Iterator[OperatorProcess]:
    """The operator, installed and running; a test that kills it starts it again."""
    process = OperatorProcess(kube, *WATCHED, namespace=OPERATOR_NAMESPACE).install().start()
    yield process
    process.close()


@pytest.fixture(autouse=True)
def turn(request: pytest.FixtureRequest) -> Iterator[None]:
    """Beside the tests of other lanes; or without any of them, where it takes away what all share."""
    with locked("turn", exclusive=unit(request.node.nodeid)[0] is Kind.ALONE):
        yield


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
    operator.ensure_running()  # it may have ended when a test of another lane took the API server away
    world = World(kafka, kube, operator, unique)
    yield world
    world.close()


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
