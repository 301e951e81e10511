"""A new namespace for every test, on a real API server with the CRDs."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from e2e.bench.kube import KubeCluster
from tests.kube.namespaces import Namespace

from kafka_rebalance.kube.client import KubeClient

_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="package")
def cluster(api_server: KubeCluster) -> KubeCluster:
    """With the CRDs and the operator's service account, as users install them."""
    api_server.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(_ROOT / "crds"))
    for name in ("namespace.yaml", "rbac.yaml"):
        api_server.kubectl("apply", "-f", str(_ROOT / "deploy" / name))
    api_server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
    return api_server


@pytest.fixture
def namespace(cluster: KubeCluster) -> Iterator[Namespace]:
    made = Namespace.create(cluster)
    yield made
    made.delete()


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
