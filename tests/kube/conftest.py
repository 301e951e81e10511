"""A new namespace for every test, on an API server with the CRDs that the tests may change and kill."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from e2e.bench.kube import KubeCluster, OwnKubeCluster
from e2e.bench.ports import release_port, reserve_port
from tests.kube.namespaces import Namespace

from kafka_rebalance.kube.client import KubeClient

_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="package")
def cluster(request: pytest.FixtureRequest) -> Iterator[OwnKubeCluster]:
    """With the CRDs and the operator's service account, as users install them."""
    cluster = OwnKubeCluster().start()
    cluster.kubectl("apply", "--server-side", "-f", str(_ROOT / "crds"))
    for name in ("namespace.yaml", "rbac.yaml"):
        cluster.kubectl("apply", "-f", str(_ROOT / "deploy" / name))
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
    yield cluster
    cluster.close(keep_logs=request.session.testsfailed > 0)


@pytest.fixture
def namespace(cluster: KubeCluster) -> Iterator[Namespace]:
    made = Namespace.create(cluster)
    yield made
    made.empty()


@pytest.fixture
def own(cluster: KubeCluster) -> Iterator[Namespace]:
    """The namespace of the operator's records; its account, roles and bindings have the same name."""
    made = Namespace.create(cluster)
    yield made
    for name in (made.name, f"{made.name}-reports"):
        cluster.kubectl("delete", "clusterrole,clusterrolebinding", name, "--ignore-not-found")
    made.delete()


@pytest.fixture
def report_port() -> Iterator[int]:
    number = reserve_port()
    yield number
    release_port(number)


@pytest.fixture(scope="package")
def untouched(cluster: KubeCluster) -> Iterator[Namespace]:
    """One namespace for all tests of refusals: nothing is stored in it."""
    made = Namespace.create(cluster)
    yield made
    made.delete()


@pytest.fixture
async def client(namespace: Namespace) -> AsyncIterator[KubeClient]:
    """As an administrator; the test's namespace is also the operator's."""
    connected = KubeClient.connect(namespace.name, kubeconfig=str(namespace.cluster.admin_kubeconfig))
    yield connected
    await connected.close()
