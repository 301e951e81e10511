"""A namespace of its own for every test, on a real API server that has the CRDs."""

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from e2e.bench.kube import KubeCluster, kube_cluster
from tests.kube.namespaces import Namespace

from kafka_rebalance.kube.client import KubeClient

_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="package")
def kube() -> Iterator[KubeCluster]:
    with kube_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="package")
def cluster(kube: KubeCluster) -> KubeCluster:
    """With the CRDs and the operator's account, as a user installs them."""
    kube.kubectl("apply", "-f", str(_ROOT / "crds"))
    for name in ("namespace.yaml", "rbac.yaml"):
        kube.kubectl("apply", "-f", str(_ROOT / "deploy" / name))
    kube.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    return kube


@pytest.fixture
def namespace(cluster: KubeCluster) -> Iterator[Namespace]:
    name = f"t-{uuid.uuid4().hex[:10]}"
    cluster.kubectl("create", "namespace", name)
    yield Namespace(cluster, name)
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
async def client(namespace: Namespace) -> AsyncIterator[KubeClient]:
    """As an administrator; the test's namespace is the operator's own."""
    connected = KubeClient.connect(namespace.name, kubeconfig=str(namespace.cluster.admin_kubeconfig))
    yield connected
    await connected.close()
