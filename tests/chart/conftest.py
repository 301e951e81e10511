"""A real API server without anything of ours: the chart installs it."""

from collections.abc import Iterator

import pytest
from e2e.bench.kube import KubeCluster, kube_cluster


@pytest.fixture(scope="package")
def cluster() -> Iterator[KubeCluster]:
    with kube_cluster() as cluster:
        yield cluster
