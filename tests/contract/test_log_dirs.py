"""Moving replicas between the log dirs of a broker (KIP-113): AlterReplicaLogDirs and what DescribeLogDirs shows of it.

Two brokers with three log dirs each. A rate of one byte per second lets one bite pass every 11 s, so a move stays in
flight until the rate is removed.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from e2e.bench.kafka import KafkaCluster
from e2e.bench.load import create_topics
from tests.contract.arranging import throttle
from tests.contract.log_dir_replicas import RATE, NewReplica, Place, jbod_cluster
from tests.contract.observing import partition, until

from kafka import errors as kafka_errors
from kafka_rebalance.cli.commands.plan_command import plan
from kafka_rebalance.cli.commands.snapshot_command import snapshot
from kafka_rebalance.kafka.ports import AlterCode, KafkaAdmin, LogDirCode
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of

pytestmark = [pytest.mark.brokers, pytest.mark.campaign]

ONE = BrokerId(1)
TWO = BrokerId(2)


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    with jbod_cluster() as cluster:
        yield cluster


@pytest.fixture
async def crawling(admin: KafkaAdmin) -> AsyncIterator[None]:
    """Moves between the log dirs of broker 1 stay in flight."""
    await throttle(admin, "1", broker=1, name=RATE)
    yield
    await throttle(admin, None, broker=1, name=RATE)


class TestPlacement:
    async def test_a_new_replica_goes_where_the_fewest_are(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        """Partitions are counted, not bytes: a topic of nine partitions makes the three dirs equal."""

        async def counts() -> list[int]:
            dirs = (await admin.log_dirs([TWO]))[TWO]
            return sorted(len(found.replica_bytes) for found in dirs)

        held = sum(await counts())
        create_topics(cluster, {"placed": [[2]] * (9 - held % 3)})
        await until("replicas by log dir", counts, lambda seen: sum(seen) > held and seen[0] == seen[2])

    async def test_each_dir_has_the_totals_of_its_file_system(self, admin: KafkaAdmin) -> None:
        """Dirs of one file system report the same bytes: their sum counts them three times."""
        dirs = (await admin.log_dirs([ONE]))[ONE]
        assert len(dirs) == 3
        assert len({found.total_bytes for found in dirs}) == 1
        assert all(0 < found.usable_bytes < found.total_bytes for found in dirs)

    async def test_a_dir_for_a_replica_that_is_not_there_yet(self, new_replica: NewReplica, admin: KafkaAdmin) -> None:
        """Refused, and kept all the same: the replica is created there when it is assigned to the broker."""
        for number in (2, 2, 2, 1):
            replica = new_replica()
            assert replica.move(number, broker=2) is kafka_errors.ReplicaNotAvailableError
            assert await admin.alter_reassignments({replica.tp: replicas_of(1, 2)}) == {replica.tp: AlterCode.OK}
            await replica.shows(Place(number), broker=2)

    async def test_a_kept_dir_does_not_survive_a_restart(
        self, cluster: KafkaCluster, new_replica: NewReplica, admin: KafkaAdmin
    ) -> None:
        """It is in the broker's memory only: of six replicas for one dir, the others get some."""
        replicas = [new_replica() for _ in range(6)]
        for replica in replicas:
            assert replica.move(2, broker=2) is kafka_errors.ReplicaNotAvailableError
        cluster.restart(2)
        assert set((await admin.alter_reassignments({r.tp: replicas_of(1, 2) for r in replicas})).values()) == {
            AlterCode.OK
        }
        for replica in replicas:
            await partition(admin, replica.tp, "is on 2", lambda s: s.isr == {1, 2})
        assert len({(await replica.place(2)).at for replica in replicas}) > 1


@pytest.mark.usefixtures("crawling")
class TestMove:
    async def test_in_flight_and_completed(self, new_replica: NewReplica, admin: KafkaAdmin) -> None:
        """The future replica is listed in the new dir beside the present one, and takes its place when it caught up."""
        replica = new_replica()
        at, to, _ = await replica.others()
        assert replica.move(to) is kafka_errors.NoError
        await replica.shows(Place(at, to))
        await throttle(admin, None, broker=1, name=RATE)
        await replica.shows(Place(to))

    async def test_what_others_see(self, new_replica: NewReplica, admin: KafkaAdmin) -> None:
        """It is no reassignment: the leader, the ISR and the list stay, and nothing is in flight for the controller."""
        replica = new_replica(both=True)
        before = await partition(admin, replica.tp, "is in sync", lambda s: s.isr == {1, 2})
        at, to, _ = await replica.others()
        assert replica.move(to) is kafka_errors.NoError
        await replica.shows(Place(at, to))
        assert (await admin.describe_partitions([replica.tp.topic]))[replica.tp] == before
        assert replica.tp not in await admin.list_reassignments()
        await throttle(admin, None, broker=1, name=RATE)
        await replica.shows(Place(to))
        assert (await admin.describe_partitions([replica.tp.topic]))[replica.tp] == before

    async def test_asked_again(self, new_replica: NewReplica) -> None:
        """For the dir that it is moving to, or (at rest) is in: nothing happens."""
        replica = new_replica()
        at, to, _ = await replica.others()
        assert replica.move(at) is kafka_errors.NoError
        assert await replica.place() == Place(at)
        for _ in range(2):
            assert replica.move(to) is kafka_errors.NoError
            await replica.shows(Place(at, to))

    async def test_cancelled_by_asking_for_the_present_dir(self, new_replica: NewReplica) -> None:
        replica = new_replica()
        at, to, _ = await replica.others()
        assert replica.move(to) is kafka_errors.NoError
        await replica.shows(Place(at, to))
        assert replica.move(at) is kafka_errors.NoError
        await replica.shows(Place(at))

    async def test_sent_to_a_third_dir_in_flight(self, new_replica: NewReplica) -> None:
        """The copied bytes are dropped, and the copy begins again."""
        replica = new_replica()
        at, to, third = await replica.others()
        assert replica.move(to) is kafka_errors.NoError
        await replica.shows(Place(at, to))
        assert replica.move(third) is kafka_errors.NoError
        await replica.shows(Place(at, third))

    async def test_the_replica_is_removed_in_flight(self, new_replica: NewReplica, admin: KafkaAdmin) -> None:
        """Both copies are deleted."""
        replica = new_replica(both=True)
        at, to, _ = await replica.others()
        assert replica.move(to) is kafka_errors.NoError
        await replica.shows(Place(at, to))
        assert await admin.alter_reassignments({replica.tp: replicas_of(2)}) == {replica.tp: AlterCode.OK}
        await replica.shows(Place(None))

    async def test_a_broker_restarts_in_flight(
        self, cluster: KafkaCluster, new_replica: NewReplica, admin: KafkaAdmin
    ) -> None:
        """The move continues; it may complete before the broker has read its rate."""
        replica = new_replica()
        at, to, _ = await replica.others()
        assert replica.move(to) is kafka_errors.NoError
        await replica.shows(Place(at, to))
        cluster.kill9(1)
        cluster.start_brokers(1)
        await throttle(admin, None, broker=1, name=RATE)
        await replica.shows(Place(to))


class TestRate:
    """One rate for all moves of a broker: a dynamic config, with effect on those in flight. No list of replicas."""

    async def test_set_in_flight(self, new_replica: NewReplica, admin: KafkaAdmin) -> None:
        """Without a rate a move of six bites takes no time; at one byte per second, bites are 11 s apart."""
        replica = new_replica()
        at, to, third = await replica.others()
        assert replica.move(to) is kafka_errors.NoError
        await replica.shows(Place(to))
        await throttle(admin, "1", broker=1, name=RATE)
        try:
            assert replica.move(third) is kafka_errors.NoError
            await replica.shows(Place(to, third))
        finally:
            await throttle(admin, None, broker=1, name=RATE)
        await replica.shows(Place(third))
        assert at != third

    async def test_the_rates_of_reassignments_do_not_apply(self, new_replica: NewReplica, admin: KafkaAdmin) -> None:
        replica = new_replica()
        _, to, _ = await replica.others()
        names = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
        for name in names:
            await throttle(admin, "1", broker=1, name=name)
        try:
            assert replica.move(to) is kafka_errors.NoError
            await replica.shows(Place(to))
        finally:
            for name in names:
                await throttle(admin, None, broker=1, name=name)


class TestOurClient:
    """Through the operator's adapter: many replicas of several brokers in one call, an answer for each."""

    async def test_moves(self, cluster: KafkaCluster, new_replica: NewReplica, admin: KafkaAdmin) -> None:
        """Two replicas to the same log dir, one of the other broker, and one that is not there."""
        first, second, both = new_replica(), new_replica(), new_replica(both=True)
        path = str(cluster.log_dirs_of(1)[2])
        orders = {(first.tp, ONE): path, (second.tp, ONE): path, (both.tp, TWO): str(cluster.log_dirs_of(2)[2])}
        answers = await admin.alter_log_dirs({**orders, (first.tp, TWO): str(cluster.log_dirs_of(2)[0])})
        assert answers == {**dict.fromkeys(orders, LogDirCode.OK), (first.tp, TWO): LogDirCode.NOT_THERE}
        for replica in (first, second):
            await replica.shows(Place(2))
        await both.shows(Place(2), broker=2)

    async def test_what_is_refused(self, cluster: KafkaCluster, new_replica: NewReplica, admin: KafkaAdmin) -> None:
        replica, missing = new_replica(), TopicPartition("not-there", 0)
        orders = {(replica.tp, ONE): "/not/a/log/dir", (missing, ONE): str(cluster.log_dirs_of(1)[0])}
        assert await admin.alter_log_dirs(orders) == {
            (replica.tp, ONE): LogDirCode.LOG_DIR_NOT_FOUND,
            (missing, ONE): LogDirCode.UNKNOWN_TOPIC_OR_PARTITION,
        }

    async def test_a_broker_that_does_not_exist(self, new_replica: NewReplica, admin: KafkaAdmin) -> None:
        """Nothing is known of what it was asked for; the others answer."""
        replica = new_replica()
        path = str(replica._jbod.log_dirs_of(1)[1])
        answers = await admin.alter_log_dirs({(replica.tp, ONE): path, (replica.tp, BrokerId(9)): path})
        assert answers == {(replica.tp, ONE): LogDirCode.OK, (replica.tp, BrokerId(9)): LogDirCode.UNKNOWN}


class TestRefused:
    async def test_a_dir_that_is_not_one_of_the_broker(self, new_replica: NewReplica) -> None:
        replica = new_replica()
        at = await replica.place()
        for path in ("/not/a/log/dir", "relative"):
            assert replica.move(path) is kafka_errors.LogDirNotFoundError
        assert await replica.place() == at

    async def test_a_broker_without_the_replica(self, new_replica: NewReplica) -> None:
        assert new_replica().move(0, broker=2) is kafka_errors.ReplicaNotAvailableError

    async def test_a_topic_that_does_not_exist(self, new_replica: NewReplica) -> None:
        replica = new_replica()
        replica.tp = TopicPartition("not-there", 0)
        assert replica.move(0) is kafka_errors.UnknownTopicOrPartitionError


class TestKafkasTool:
    async def test_a_planned_drain(
        self, cluster: KafkaCluster, new_replica: NewReplica, admin: KafkaAdmin, tmp_path: Path
    ) -> None:
        """`snapshot`, `plan --drain-log-dir` and Kafka's tool empty a log dir, and nothing else moves."""
        for _ in range(6):
            new_replica()
        servers, state, file = cluster.bootstrap_servers, str(tmp_path / "cluster.json"), tmp_path / "plan.json"
        drained = str(cluster.log_dirs_of(1)[1])

        async def held() -> dict[str, set[TopicPartition]]:
            return {found.path: set(found.replica_bytes) for found in (await admin.log_dirs([ONE]))[ONE]}

        before = await held()
        assert before[drained]
        arguments = ("--strategy", "ForcedMovesOnly", "--log-dirs", "100%", "--drain-log-dir", f"1:{drained}")
        # Each command has an event loop of its own.
        wrote = await asyncio.to_thread(
            CliRunner().invoke, snapshot, ["--bootstrap-servers", servers, "-o", state], catch_exceptions=False
        )
        assert wrote.exit_code == 0, wrote.output
        made = CliRunner().invoke(plan, ["--cluster", state, *arguments, "-o", "json"], catch_exceptions=False)
        assert made.exit_code == 0, made.output
        document = json.loads(made.stdout)
        assert (document["summary"]["replicaMoves"], document["summary"]["logDirs"]["moves"]) == (
            0,
            len(before[drained]),
        )
        file.write_text(made.stdout)
        tool = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
        said = cluster.run_tool(tool, "--bootstrap-server", servers, "--reassignment-json-file", str(file), "--execute")
        assert "Successfully started" in said
        after = await until("the drained log dir", held, lambda seen: not seen[drained])
        assert all(before[path] <= after[path] for path in before.keys() - {drained})
        assert set.union(*before.values()) == set.union(*after.values())
