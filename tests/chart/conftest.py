"""The API server without our resources: the chart installs them."""

import pytest
from e2e.bench.kube import KubeCluster


@pytest.fixture(scope="package")
def cluster(api_server: KubeCluster) -> KubeCluster:
    return api_server
