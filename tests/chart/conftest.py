"""The API server before anything of ours is there: the chart installs it."""

import pytest
from e2e.bench.kube import KubeCluster


@pytest.fixture(scope="package")
def cluster(api_server: KubeCluster) -> KubeCluster:
    return api_server
