"""A log dir that is offline: what its broker shows and does until it is back (KIP-112)."""

import contextlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
from e2e.bench.kafka import KafkaCluster
from kafka.protocol.admin import DescribeLogDirsRequest
from tests.contract.arranging import throttle
from tests.contract.log_dir_replicas import RATE, NewReplica, Place, jbod_cluster, new_client
from tests.contract.observing import partition, until

from kafka import errors as kafka_errors
from kafka_rebalance.kafka.ports import KafkaAdmin, LogDirCode
from kafka_rebalance.model.topology import BrokerId

pytestmark = [pytest.mark.brokers, pytest.mark.campaign]

ONE = BrokerId(1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    with jbod_cluster() as cluster:
        yield cluster


Failure = Callable[[int], AbstractContextManager[Path]]


@pytest.fixture
def failed(cluster: KafkaCluster) -> Failure:
    """A failure of the log dir with this number."""
    return partial(failure, cluster)


@contextlib.contextmanager
def failure(cluster: KafkaCluster, number: int) -> Iterator[Path]:
    """Broker 1 has started without this log dir; at the end it is dead, and the log dir is as it was."""
    path = cluster.log_dirs_of(1)[number]
    cluster.kill9(1)
    shutil.move(path, path.with_suffix(".away"))
    path.write_text("no directory")
    cluster.start_brokers(1)
    try:
        yield path
    finally:
        cluster.kill9(1)
        path.unlink()
        shutil.move(path.with_suffix(".away"), path)


class TestOffline:
    async def test_its_replicas(
        self, cluster: KafkaCluster, new_replica: NewReplica, admin: KafkaAdmin, failed: Failure
    ) -> None:
        """They are out of sync until it is back, and cannot be moved; new replicas go to the other log dirs.

        A future replica in it is not shown. A request for the present log dir does not delete that replica, and the
        move continues when the log dir is back.
        """
        inside, coming = new_replica(both=True), new_replica(both=True)
        for replica, at in ((inside, 2), (coming, 0)):
            assert replica.move(at) is kafka_errors.NoError
            await replica.shows(Place(at))
        await throttle(admin, "1", broker=1, name=RATE)
        assert coming.move(2) is kafka_errors.NoError
        await coming.shows(Place(0, 2))
        with failed(2):
            await partition(admin, inside.tp, "is out of sync", lambda s: s.isr == {2} and s.leader == 2)
            for _ in range(6):
                # They also show that the broker has read the metadata; before, its answer is ReplicaNotAvailable.
                new = new_replica(both=True)
                await until("a new replica", new.place, lambda place: place.at is not None)
                assert (await new.place()).at in {0, 1}
            assert await inside.place() == Place(None)
            assert inside.move(1) is kafka_errors.KafkaStorageError
            await coming.shows(Place(0))
            assert coming.move(0) is kafka_errors.NoError
        cluster.start_brokers(1)
        await partition(admin, inside.tp, "is in sync", lambda s: s.isr == {1, 2})
        await inside.shows(Place(2))  # the broker that has answered may not have read the metadata of meanwhile yet
        await throttle(admin, None, broker=1, name=RATE)
        await coming.shows(Place(2))

    async def test_an_offline_dir(
        self, cluster: KafkaCluster, new_replica: NewReplica, admin: KafkaAdmin, failed: Failure
    ) -> None:
        """Listed with an error and without replicas; refused as a target."""
        for _ in range(6):  # some of them are in the dir that fails
            new_replica()
        inside = [new_replica() for _ in range(3)]
        places = [(await replica.place()).at for replica in inside]
        kept = inside[places.index(1)]
        with failed(2) as failing:

            def codes() -> dict[str, int]:
                request = DescribeLogDirsRequest(topics=None)
                with new_client(cluster) as client:
                    answer = client._manager.run(lambda: client._manager.send(request, 1))
                return {row.log_dir: row.error_code for row in answer.results}

            assert codes() == {
                str(path): kafka_errors.KafkaStorageError.errno if path == failing else 0
                for path in cluster.log_dirs_of(1)
            }
            await kept.shows(Place(1))
            assert {found.path for found in (await admin.log_dirs([ONE]))[ONE]} == {
                str(path) for path in cluster.log_dirs_of(1)[:2]
            }
            assert kept.move(2) is kafka_errors.KafkaStorageError
            code = (await admin.alter_log_dirs({(kept.tp, ONE): str(failing)}))[kept.tp, ONE]
            assert code is LogDirCode.LOG_DIR_OFFLINE
