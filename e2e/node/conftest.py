"""One node with the project's images, brokers that its Pods can reach, and the operator installed from its chart.

The fixtures of `e2e/conftest.py` still apply: `kube` is the node, `operator` is the release.
"""

from collections.abc import Iterator

import pytest

from e2e.bench.kafka import KafkaCluster, racks_of
from e2e.bench.operator import NAMESPACE
from e2e.node.docker import Docker
from e2e.node.images import IMAGES, build_images
from e2e.node.provider import Node, node, own
from e2e.node.release import Release


@pytest.fixture(scope="session")
def docker() -> Iterator[Docker]:
    """A Docker daemon with the images."""
    with Docker(own=own()) as daemon:
        build_images(daemon)
        yield daemon


@pytest.fixture(scope="session")
def kube(request: pytest.FixtureRequest, docker: Docker) -> Iterator[Node]:
    """The node, with the images; the operator's namespace enforces Pod Security `restricted`."""
    cluster = node().start()
    try:
        cluster.load(docker, *IMAGES)
        cluster.kubectl("create", "namespace", NAMESPACE)
        cluster.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
        yield cluster
    finally:
        cluster.close(keep_logs=request.session.testsfailed > 0)


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest, kube: Node) -> Iterator[KafkaCluster]:
    """Brokers 1 to 5 in racks r1, r2, r3, r1, r2, reachable from Pods."""
    # A follower may fetch 1 MB of each partition before the throttle takes effect: smaller fetches keep a slow copy
    # slow.
    properties = {"replica.fetch.max.bytes": "65536"}
    cluster = KafkaCluster(racks_of(range(1, 6)), properties=properties, host=kube.host_address).start()
    yield cluster
    cluster.close(keep_logs=request.session.testsfailed > 0)


@pytest.fixture(scope="session")
def operator(kube: Node) -> Release:
    """The operator, installed; the last test uninstalls it."""
    return Release(kube).install()
