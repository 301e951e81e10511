"""The clusters of the end-to-end tests, and the location of their logs if a test fails.

Every worker is a lane: a Kafka cluster (five brokers in three racks, and a controller: about 2 GB) and an operator
serve all its tests; each test has its own topics and restores everything else that it changes. Lanes run in parallel
and share only the API server. Tests cannot run in parallel on one cluster: a broker has only one throttle rate, the
lowest. The scope of these fixtures is the package: idle brokers use CPU, so a lane stops them after its last end-to-end
test, before it helps with the other tests.
"""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from e2e.bench.judge import Judge
from e2e.bench.kafka import KafkaCluster, racks_of
from e2e.bench.kube import KubeCluster
from e2e.bench.operator import OperatorProcess
from e2e.bench.ports import release_port, reserve_port
from e2e.bench.sharing import locked, shared_kube_cluster
from e2e.connection import Connection
from e2e.lane import NAMESPACE, OPERATOR_NAMESPACE, WATCHED
from e2e.world import World


@pytest.fixture(scope="package")
def kafka(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """Brokers 1 to 5 in racks r1, r2, r3, r1, r2, with two listeners."""
    # A follower may fetch 1 MB of each partition before the throttle takes effect: smaller fetches keep a slow copy
    # slow.
    slow_copies = {"replica.fetch.max.bytes": "65536"}
    # Followers at rest ask twice a second by default, and that is most of what idle brokers cost.
    at_rest = {"replica.fetch.wait.max.ms": "1000"}
    cluster = KafkaCluster(racks_of(range(1, 6)), properties=slow_copies | at_rest, two_listeners=True)
    with locked("start-of-brokers", exclusive=True):  # one after the other, the first is ready much earlier
        cluster.start()
    yield cluster
    cluster.close(keep_logs=request.session.testsfailed > 0)


@pytest.fixture(scope="package")
def kube(request: pytest.FixtureRequest) -> Iterator[KubeCluster]:
    """The API server that `E2E_PROVIDER` selects, shared by all lanes, with the lane's namespace."""
    with shared_kube_cluster(lambda: request.session.testsfailed > 0) as cluster:
        cluster.apply(f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n")
        yield cluster


@pytest.fixture(scope="package")
def operator(kube: KubeCluster) -> Iterator[OperatorProcess]:
    """The operator, installed and running; a test that kills it starts it again."""
    ports = [reserve_port(), reserve_port()]
    process = OperatorProcess(kube, *WATCHED, namespace=OPERATOR_NAMESPACE, metrics_port=ports[0], report_port=ports[1])
    process.install().start()
    yield process
    process.close()
    for port in ports:
        release_port(port)


@pytest.fixture
def judge(kafka: KafkaCluster) -> Judge:
    """Kafka's own tools on the shared cluster."""
    return Judge(kafka)


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Unique names: `unique("orders")` is for example orders-3f2a91c4, always the same within a test."""
    suffix = uuid.uuid4().hex[:8]
    return lambda name: f"{name}-{suffix}"


@pytest.fixture
def world(
    kube: KubeCluster, kafka: KafkaCluster, operator: OperatorProcess, unique: Callable[[str], str]
) -> Iterator[World]:
    """Topics and resources of one test, on the shared clusters.

    The API server is first, hence stopped last: its lane waits for the other lanes then, and needs no brokers for that.
    """
    world = World(kafka, kube, operator, unique)
    yield world
    world.close()


@pytest.fixture
def connect(world: World) -> Iterator[Callable[..., Connection]]:
    """Creates KafkaConnections, deleted with the test."""
    made: list[Connection] = []

    def make(name: str = "connection", **spec: Any) -> Connection:
        made.append(Connection(world, name, **spec))
        return made[-1]

    yield make
    for connection in made:
        connection.delete()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Add the log locations of its clusters to the report of a failed test."""
    report = yield
    if report.failed:
        for name, fixture in getattr(item, "funcargs", {}).items():
            if isinstance(fixture, KafkaCluster | KubeCluster):
                report.sections.append((f"logs of {name}", str(fixture.directory)))
            elif isinstance(fixture, OperatorProcess):
                report.sections.append((f"logs of {name}", str(fixture.log)))
    return report
