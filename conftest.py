"""Shared by all tests: the API server, the Hypothesis profiles, the workers, and the report of durations."""

import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from e2e.bench.kube import KubeCluster
from e2e.bench.sharing import DIRECTORY, shared_kube_cluster
from tests.examples import register_profiles
from tests.timing import Timing
from tests.workers import Scheduling, is_lane, position
from xdist.remote import Producer

register_profiles()
_WORKER = os.environ.get("PYTEST_XDIST_WORKER")
_NICENESS = 10
# Spark's driver runs for a minute: optimised compilation costs more than it gains.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def api_server(request: pytest.FixtureRequest) -> Iterator[KubeCluster]:
    """The API server that `E2E_PROVIDER` selects, shared by all workers."""
    with shared_kube_cluster(lambda: request.session.testsfailed > 0) as cluster:
        yield cluster


def pytest_configure(config: pytest.Config) -> None:
    """Before workers start: create a shared directory. In a worker: set its priority."""
    if _WORKER is None:
        os.environ[DIRECTORY] = tempfile.mkdtemp(prefix="kafka-rebalance-tests-")
        config.pluginmanager.register(Timing())
    elif not is_lane(_WORKER):
        os.nice(_NICENESS)


def pytest_unconfigure() -> None:
    """Delete the shared directory at the end of the run."""
    if _WORKER is None:
        shutil.rmtree(os.environ.pop(DIRECTORY), ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """Replaces the schedulers of xdist."""
    return Scheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run long tests first."""
    items.sort(key=lambda item: position(item.nodeid))
