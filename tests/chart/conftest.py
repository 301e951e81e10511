"""An API server without our resources: the chart installs them, and deletes them again."""

from collections.abc import Iterator

import pytest
from e2e.bench.kube import OwnKubeCluster


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[OwnKubeCluster]:
    cluster = OwnKubeCluster().start()
    yield cluster
    cluster.close(keep_logs=request.session.testsfailed > 0)
