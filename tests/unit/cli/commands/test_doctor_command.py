"""kafka-rebalance doctor: which reassignments it finds wedged, which ones it cancels, and what it reports."""

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import cast

import pytest
from click.testing import CliRunner

from kafka_rebalance.cli.commands import doctor_command as doctor
from kafka_rebalance.cli.commands import wedged_reassignments as wedges
from kafka_rebalance.cli.commands.wedged_reassignments import wedged_reassignments
from kafka_rebalance.cli.tables.findings_table import Finding
from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.kafka.ports import (
    AlterCode,
    Answers,
    AuthorizedOperations,
    ClusterInfo,
    ConfigSource,
    ConfigValue,
    KafkaAdmin,
    LogDir,
    Reassignment,
)
from kafka_rebalance.model.topology import Broker, BrokerId, PartitionState, Replicas, TopicPartition, replicas_of

ORDERS, PAYMENTS, MOVING, RESTING = (TopicPartition(name, 0) for name in ("orders", "payments", "moving", "resting"))


def state(tp, *ids, adding=(), removing=(), isr=None):
    in_sync = frozenset(BrokerId(b) for b in (ids if isr is None else isr))
    return PartitionState(
        tp, "id", replicas_of(*ids), in_sync, BrokerId(ids[0]), replicas_of(*adding), replicas_of(*removing)
    )


WEDGED = state(ORDERS, 1, 2, 3, 4, adding=(4,), removing=(4,))
ALSO_WEDGED = state(PAYMENTS, 4, 2, 3, 1, 5, adding=(4, 5), removing=(1, 5))
OTHERS = (state(MOVING, 4, 2, 3, 1, adding=(4,), removing=(1,)), state(RESTING, 1, 2, 3))


class Cluster:
    """Brokers that carry out a null at once; ``codes`` are refusals. ``sent`` are the requests."""

    def __init__(self, *states: PartitionState) -> None:
        self.states = {s.tp: s for s in states}
        self.codes: dict[TopicPartition, AlterCode] = {}
        self.untold: set[TopicPartition] = set()
        self.may = frozenset({"Describe", "Alter", "DescribeConfigs", "AlterConfigs"})
        self.hidden: frozenset[str] = frozenset()
        self.lagging: dict[TopicPartition, PartitionState] = {}
        self.sent: list[dict[TopicPartition, Replicas | None]] = []
        self.after_first_listing: dict[TopicPartition, PartitionState] = {}
        self.before_second_listing: dict[TopicPartition, PartitionState] = {}
        self.reply_lost = self.silent_after = False
        self.listings = 0
        self.closed = False
        self.min_insync: int | None = 1

    async def topic_configs(self, topics: Collection[str], names: Collection[str]) -> dict[str, dict[str, ConfigValue]]:
        if self.min_insync is None:
            raise Permanent("KafkaAuthorizationFailed", "DESCRIBE_CONFIGS is refused")
        value = ConfigValue(str(self.min_insync), ConfigSource.DEFAULT)
        return {topic: dict.fromkeys(names, value) for topic in topics}

    async def list_reassignments(self) -> dict[TopicPartition, Reassignment]:
        self.listings += 1
        if self.listings == 2:
            self.states |= self.before_second_listing
        rows = {tp: Reassignment(s.replicas, s.adding, s.removing) for tp, s in self.states.items() if s.in_flight}
        self.states |= self.after_first_listing
        return rows

    async def describe_cluster(self) -> ClusterInfo:
        return ClusterInfo("c", {BrokerId(1): Broker(BrokerId(1))})

    async def log_dirs(self, brokers: Collection[BrokerId]) -> Answers[BrokerId, tuple[LogDir, ...], BrokerId]:
        held = dict.fromkeys([*self.states, *(TopicPartition(topic, 0) for topic in self.hidden)], 1)
        return Answers(dict.fromkeys(brokers, (LogDir("/data", held),)))

    async def authorized_operations(self, topics: Collection[str]) -> AuthorizedOperations:
        of_topics = {topic: self.may for topic in topics if topic not in self.hidden}
        return AuthorizedOperations(self.may, of_topics, self.hidden.intersection(topics))

    async def describe_partitions(
        self, topics: Collection[str] | None = None
    ) -> Answers[TopicPartition, PartitionState, str]:
        if topics is None:
            return Answers(self.states)
        if denied := self.hidden.intersection(topics):
            return Answers({}, dict.fromkeys(denied, Permanent("KafkaAuthorizationFailed", "no")))
        if self.sent and self.silent_after:
            raise Transient("KafkaUnreachable", "nothing heard in time")
        told = {tp: s for tp, s in self.states.items() if tp.topic in topics and tp not in self.untold}
        if self.sent and self.lagging:
            told |= self.lagging
            self.lagging = {}
        return Answers(told)

    async def alter_reassignments(
        self, orders: Mapping[TopicPartition, Replicas | None]
    ) -> dict[TopicPartition, AlterCode]:
        if orders:
            self.sent.append(dict(orders))
        codes = {tp: self.codes.get(tp, AlterCode.OK) for tp in orders}
        for tp, code in codes.items():
            assert orders[tp] is None
            if code is AlterCode.OK:
                s = self.states[tp]
                left = tuple(b for b in s.replicas if b not in s.adding)
                self.states[tp] = replace(s, replicas=left, isr=s.isr & set(left), adding=(), removing=())
        if self.reply_lost:
            raise Transient("KafkaUnreachable", "nothing heard in time")
        return codes

    async def close(self) -> None:
        self.closed = True


async def examine(cluster: Cluster, *, cancel: bool = False) -> list[Finding]:
    return await wedged_reassignments(cast("KafkaAdmin", cluster), cancel=cancel)


def outcomes(findings):
    return {found.row["TOPIC-PARTITION"]: found.row.get("OUTCOME") for found in findings}


class TestFinding:
    async def test_what_adds_and_removes_the_same_broker(self) -> None:
        """In the whole cluster, sorted; partitions that are just moving or at rest are not reported."""
        found = await examine(Cluster(ALSO_WEDGED, *OTHERS, WEDGED))
        assert [f.fields for f in found] == [
            {
                "topic": "orders",
                "partition": 0,
                "replicas": [1, 2, 3, 4],
                "adding": [4],
                "removing": [4],
                "inSync": [1, 2, 3, 4],
            },
            {
                "topic": "payments",
                "partition": 0,
                "replicas": [4, 2, 3, 1, 5],
                "adding": [4, 5],
                "removing": [1, 5],
                "inSync": [1, 2, 3, 4, 5],
            },
        ]
        assert {f.reason for f in found} == {"WedgedReassignment"}
        assert not any(f.mended for f in found)

    async def test_nothing(self) -> None:
        """Metadata is not even requested."""
        cluster = Cluster(*OTHERS)
        cluster.describe_partitions = None  # type: ignore[method-assign, assignment]
        assert await examine(cluster, cancel=True) == []
        assert cluster.sent == []

    async def test_one_that_no_broker_tells_about_is_found_all_the_same(self) -> None:
        """The controller answers the listing, any broker the metadata request."""
        cluster = Cluster(WEDGED)
        cluster.untold = {ORDERS}
        (found,) = await examine(cluster)
        assert (found.fields["adding"], found.fields["inSync"]) == ([4], None)

    async def test_one_that_ends_while_we_look_is_none(self) -> None:
        """Kafka 3.9 completes them, and another tool may cancel them."""
        cluster = Cluster(WEDGED)
        cluster.after_first_listing = {ORDERS: state(ORDERS, 1, 2, 3)}
        assert await examine(cluster) == []

    async def test_looking_changes_nothing(self) -> None:
        cluster = Cluster(WEDGED, *OTHERS)
        await examine(cluster)
        assert cluster.sent == []


class TestCancelling:
    async def test_exactly_the_wedged_ones_get_a_null(self) -> None:
        """Other reassignments are left to the tool that started them."""
        cluster = Cluster(WEDGED, ALSO_WEDGED, *OTHERS)
        found = await examine(cluster, cancel=True)
        assert cluster.sent == [{ORDERS: None, PAYMENTS: None}]
        assert outcomes(found) == {
            "orders-0": "cancelled; replicas are 1,2,3",
            "payments-0": "cancelled; replicas are 2,3,1",
        }
        assert [f.fields["left"] for f in found] == [[1, 2, 3], [2, 3, 1]]
        assert all(f.mended for f in found)

    @pytest.mark.parametrize("now", [replace(WEDGED, removing=()), state(ORDERS, 1, 2, 3)])
    async def test_one_that_was_ended_and_begun_anew_meanwhile_is_not_touched(self, now: PartitionState) -> None:
        """It is listed once more right before the request."""
        cluster = Cluster(WEDGED)
        cluster.before_second_listing = {ORDERS: now}
        (found,) = await examine(cluster, cancel=True)
        assert cluster.sent == []
        assert found.mended
        assert cluster.states[ORDERS] == now

    @pytest.mark.parametrize("isr", [{4}, set()])
    async def test_the_only_live_copy_is_never_thrown_away(self, isr: set[int]) -> None:
        """KIP-236: Kafka 3.9 would do it. The other one is still cancelled."""
        lost = state(ORDERS, 1, 2, 3, 4, adding=(4,), removing=(4,), isr=isr)
        cluster = Cluster(lost, ALSO_WEDGED)
        found = await examine(cluster, cancel=True)
        assert cluster.sent == [{PAYMENTS: None}]
        assert "none of the original replicas [1, 2, 3] is in sync" in outcomes(found)["orders-0"]
        assert [f.mended for f in found] == [False, True]

    @pytest.mark.parametrize(
        ("min_insync", "why"),
        [
            (2, "only [1] would be in sync, and min.insync.replicas is 2"),
            (None, "no broker reported min.insync.replicas"),
        ],
    )
    async def test_nothing_is_brought_below_min_insync_replicas(self, min_insync: int | None, why: str) -> None:
        """Kafka would do it, and producers would fail. A value that cannot be read may be any."""
        cluster = Cluster(state(ORDERS, 1, 2, 3, 4, adding=(4,), removing=(4,), isr={1, 4}))
        cluster.min_insync = min_insync
        (found,) = await examine(cluster, cancel=True)
        assert cluster.sent == []
        assert why in outcomes([found])["orders-0"]
        assert not found.mended

    async def test_without_the_isr_nothing_is_risked(self) -> None:
        cluster = Cluster(WEDGED)
        cluster.untold = {ORDERS}
        (found,) = await examine(cluster, cancel=True)
        assert cluster.sent == []
        assert "no broker reported" in found.fields["notCancelled"]

    @pytest.mark.parametrize(
        ("code", "said"),
        [
            (AlterCode.INVALID_REPLICA_ASSIGNMENT, "Kafka refuses"),
            (AlterCode.UNKNOWN_TOPIC_OR_PARTITION, "the partition no longer exists"),
            (AlterCode.NOT_AUTHORIZED, "ALTER"),
        ],
    )
    async def test_what_kafka_refuses_is_named(self, code: AlterCode, said: str) -> None:
        cluster = Cluster(WEDGED, ALSO_WEDGED)
        cluster.codes = {ORDERS: code}
        found = await examine(cluster, cancel=True)
        assert said in outcomes(found)["orders-0"]
        assert [f.mended for f in found] == [False, True]

    async def test_a_lost_reply_is_settled_by_reading(self) -> None:
        """A missing answer is not a refusal."""
        cluster = Cluster(WEDGED)
        cluster.reply_lost = True
        (found,) = await examine(cluster, cancel=True)
        assert found.fields["left"] == [1, 2, 3]

    async def test_metadata_that_is_behind_is_asked_again(self) -> None:
        """The listing becomes empty first: metadata that still shows the copy is stale."""
        cluster = Cluster(WEDGED)
        cluster.lagging = {ORDERS: replace(WEDGED, adding=(), removing=())}
        (found,) = await examine(cluster, cancel=True)
        assert found.fields["left"] == [1, 2, 3]
        assert cluster.lagging == {}


class TestGivingUp:
    """The wait is bounded, and the report says what is unknown then."""

    @pytest.fixture(autouse=True)
    def at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(wedges, "_SETTLE_SECONDS", 0.0)

    async def test_still_listed(self) -> None:
        cluster = Cluster(WEDGED)
        cluster.codes = {ORDERS: AlterCode.UNKNOWN}
        (found,) = await examine(cluster, cancel=True)
        assert not found.mended
        assert "still listed" in found.fields["notCancelled"]

    async def test_nothing_heard(self) -> None:
        cluster = Cluster(WEDGED)
        cluster.silent_after = True
        (found,) = await examine(cluster, cancel=True)
        assert not found.mended
        assert "unknown whether it was cancelled: nothing heard in time" in found.fields["notCancelled"]


class TestCommand:
    """Exit 0 if no problem is left, else 1."""

    @pytest.fixture
    def cluster(self, monkeypatch: pytest.MonkeyPatch) -> Cluster:
        cluster = Cluster(*OTHERS)
        monkeypatch.setattr(doctor, "connect", lambda _settings: cluster)
        return cluster

    def run(self, *options: str):
        return CliRunner().invoke(doctor.doctor, ["--bootstrap-servers", "kafka:9092", *options])

    @pytest.mark.parametrize("options", [(), ("--cancel-wedged",)])
    def test_one_line_when_nothing_is_wrong(self, cluster: Cluster, options: tuple[str, ...]) -> None:
        done = self.run(*options)
        assert (done.exit_code, done.stdout) == (
            0,
            "no problems found: no reassignment is stuck, no permission is missing\n",
        )
        assert cluster.closed

    def test_a_table_when_something_is(self, cluster: Cluster) -> None:
        """And the command that clears it."""
        cluster.states[ORDERS] = WEDGED
        done = self.run()
        assert done.exit_code == 4
        header, row, _, meaning = (line.split() for line in done.stdout.splitlines())
        assert header == ["TOPIC-PARTITION", "REPLICAS", "ADDING", "REMOVING", "IN", "SYNC"]
        assert row == ["orders-0", "1,2,3,4", "4", "4", "1,2,3,4"]
        assert meaning[:2] == ["WedgedReassignment", "(1):"]
        assert "--cancel-wedged" in meaning

    @pytest.mark.parametrize(("code", "exit_code"), [(AlterCode.OK, 0), (AlterCode.NOT_AUTHORIZED, 4)])
    def test_cancelling_counts_by_what_is_left(self, cluster: Cluster, code: AlterCode, exit_code: int) -> None:
        cluster.states |= {ORDERS: WEDGED, PAYMENTS: ALSO_WEDGED}
        cluster.codes = {ORDERS: code}
        done = self.run("--cancel-wedged")
        assert done.exit_code == exit_code
        assert "payments-0" in done.stdout
        assert "cancelled; replicas are 2,3,1" in done.stdout

    def test_json(self, cluster: Cluster) -> None:
        assert json.loads(self.run("-o", "json").stdout) == {"findings": []}
        cluster.states[ORDERS] = WEDGED
        done = self.run("-o", "json", "--cancel-wedged")
        assert done.exit_code == 0
        assert json.loads(done.stdout) == {
            "findings": [
                {
                    "reason": "WedgedReassignment",
                    "topic": "orders",
                    "partition": 0,
                    "replicas": [1, 2, 3, 4],
                    "adding": [4],
                    "removing": [4],
                    "inSync": [1, 2, 3, 4],
                    "left": [1, 2, 3],
                    "mended": True,
                }
            ]
        }

    def test_what_could_not_be_found_out_is_not_taken_for_health(self, cluster: Cluster) -> None:
        """Without permission or without an answer the command fails like every other."""

        async def refuse() -> dict[TopicPartition, Reassignment]:
            raise Permanent("KafkaAuthorizationFailed", "no")

        cluster.list_reassignments = refuse  # type: ignore[method-assign]
        done = self.run()
        assert isinstance(done.exception, Permanent)
        assert (done.stdout, cluster.closed) == ("", True)

    def test_permissions(self, cluster: Cluster) -> None:
        """Each is named, with what it costs; also on topics that this user cannot see at all."""
        cluster.may -= {"AlterConfigs"}
        cluster.hidden = frozenset({"payroll"})
        done = self.run("-o", "json")
        assert done.exit_code == 4
        found = [(f["operation"], f["resource"], f["topics"]) for f in json.loads(done.stdout)["findings"]]
        topics = sorted({tp.topic for tp in cluster.states})
        assert found == [
            ("AlterConfigs", "Cluster", []),
            ("Describe", "Topic", ["payroll"]),
            ("AlterConfigs", "Topic", topics),
        ]
        table = self.run().stdout
        assert "Describe on topic payroll" in table
        assert "PermissionsMissing (3): " in table

    def test_what_cannot_be_read_for_lack_of_a_permission(self, cluster: Cluster) -> None:
        """The permission is named, and no error ends the command."""

        async def refuse() -> dict[TopicPartition, Reassignment]:
            raise Permanent("KafkaAuthorizationFailed", "no")

        cluster.list_reassignments = refuse  # type: ignore[method-assign]
        cluster.may = frozenset()
        done = self.run()
        assert (done.exit_code, "Alter on the cluster" in done.stdout) == (4, True)
