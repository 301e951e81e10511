"""The simulated log dirs behave as recorded: the cases of `tests/contract`, as in `test_recordings.py`."""

import pytest
import pytest_asyncio
from tests.contract import test_log_dirs, test_offline_log_dir
from tests.contract.arranging import throttle
from tests.contract.log_dir_replicas import RATE, Replica
from tests.simulation.log_dirs import KafkaWithLogDirs
from tests.simulation.process import at_once
from tests.simulation.stand_in_cluster import StandInCluster

from kafka import errors as kafka_errors
from kafka_rebalance.kafka.ports import LogDirCode
from kafka_rebalance.model.topology import BrokerId

pytestmark = pytest.mark.asyncio(loop_scope="module")

_ERRORS = {
    LogDirCode.OK: kafka_errors.NoError,
    LogDirCode.NOT_THERE: kafka_errors.ReplicaNotAvailableError,
    LogDirCode.LOG_DIR_NOT_FOUND: kafka_errors.LogDirNotFoundError,
    LogDirCode.LOG_DIR_OFFLINE: kafka_errors.KafkaStorageError,
    LogDirCode.UNKNOWN_TOPIC_OR_PARTITION: kafka_errors.UnknownTopicOrPartitionError,
}


class SimulatedReplica(Replica):
    """Moved without a client."""

    def move(self, to, broker=1):
        path = to if isinstance(to, str) else self._jbod.log_dirs_of(broker)[to]
        key = self.tp, BrokerId(broker)
        return _ERRORS[at_once(self._jbod.kafka.alter_log_dirs({key: path}))[key]]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def cluster(family):
    """Two brokers with three log dirs each."""
    cluster = StandInCluster({1: "a", 2: "b"}, family, KafkaWithLogDirs)
    cluster.kafka.dirs = {b: tuple(f"/data/{name}" for name in "abc") for b in cluster.kafka.brokers}
    yield cluster
    cluster.close()


@pytest_asyncio.fixture(loop_scope="module")
async def crawling(admin):
    """Moves between the log dirs of broker 1 stay in flight."""
    await throttle(admin, "1", broker=1, name=RATE)
    yield
    await throttle(admin, None, broker=1, name=RATE)


@pytest.fixture
def new_replica(cluster, admin):
    return lambda *, both=False: SimulatedReplica(cluster, admin, both=both)


@pytest.fixture
def failed(cluster):
    return cluster.failure


class TestPlacement(test_log_dirs.TestPlacement):
    test_each_dir_has_the_totals_of_its_file_system = None


class TestMove(test_log_dirs.TestMove):
    pass


class TestRate(test_log_dirs.TestRate):
    pass


class TestOurClient(test_log_dirs.TestOurClient):
    pass


class TestRefused(test_log_dirs.TestRefused):
    pass


class TestOffline(test_offline_log_dir.TestOffline):
    test_an_offline_dir = None
