"""Parsing resources: what is accepted, what is refused, and which changes require a new plan."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kafka_rebalance.api.connection import SaslMechanism
from kafka_rebalance.api.execution_spec import DeletionPolicy
from kafka_rebalance.api.overrides import MAX_TEXT
from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec
from kafka_rebalance.api.resource_status import KafkaRebalanceStatus
from kafka_rebalance.api.v1alpha1 import (
    UNDO_ANNOTATION,
    parse_metadata,
    parse_rebalance,
    parse_spec,
    parse_throttle,
    planning_hash,
)
from kafka_rebalance.errors import Refused
from kafka_rebalance.units import parse_quantity

EXAMPLES = Path(__file__).parents[3] / "examples"


def body(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "add-brokers", "namespace": "kafka", "uid": "u-1", "generation": 1, "labels": {"a": "b"}},
        "spec": {"kafka": {"bootstrapServers": "kafka-0.kafka:9092,[::1]:9093"}, **spec},
    }


def spec(**parts: Any) -> KafkaRebalanceSpec:
    return parse_rebalance(body(**parts)).spec


class TestDefaults:
    """A resource that sets only its cluster gets small steps, enforced rack awareness and a rollback on deletion."""

    def test_defaults(self) -> None:
        read = spec()
        execution = read.execution
        assert (execution.parallel_replica_count, execution.parallel_partition_count) == (1, 100)
        assert (execution.parallel_leader_movements, execution.max_concurrent_replica_movements) == (20, None)
        assert execution.stall_timeout_seconds == 900
        assert not execution.suspend
        assert read.throttle is None
        assert read.deletion_policy is DeletionPolicy.ROLLBACK
        assert read.goals.rack_awareness == "Enforced"
        assert read.goals.leaders
        assert read.goals.follower_order


class TestUnits:
    """Rates are in bytes per second and durations in seconds, however they are written."""

    @pytest.mark.parametrize("written", ["50Mi", 52428800, "52428800"])
    def test_rates(self, written: str | int) -> None:
        throttle = spec(throttle={"leaderRate": written}).throttle
        assert throttle is not None
        assert throttle.leader_rate == parse_quantity("50Mi")
        assert throttle.follower_rate is None

    def test_duration(self) -> None:
        assert spec(execution={"stallTimeout": "1h30m"}).execution.stall_timeout_seconds == 5400

    @pytest.mark.parametrize("written", [-1, "-1", None])
    def test_unset_rates_of_the_throttle_resource(self, written: int | str | None) -> None:
        limits = parse_throttle(body(leaderRate=written, followerRate="1Mi")).spec
        assert limits.leader_rate is None
        assert limits.follower_rate == 2**20
        assert not limits.freeze


def test_the_examples_are_valid() -> None:
    bodies = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(EXAMPLES.glob("*.yaml"))]
    rebalances = [body for body in bodies if body["kind"] == "KafkaRebalance"]
    metadata = {"uid": "u-1", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
    specs = [parse_rebalance({**body, "metadata": {**metadata, **body["metadata"]}}).spec for body in rebalances]
    assert (len(specs), sum(spec.goals.disk_limit == 80 for spec in specs)) == (6, 1)


class TestRefusals:
    """An invalid spec is refused as InvalidSpec, with the path of the field."""

    @pytest.mark.parametrize(
        ("parts", "path"),
        [
            ({"bogus": 1}, "spec.bogus: unknown field"),
            ({"execution": {"parallel_replica_count": 2}}, "spec.execution.parallel_replica_count: unknown field"),
            ({"execution": {"parallelReplicaCount": 0}}, "spec.execution.parallelReplicaCount: "),
            ({"execution": {"parallelReplicaCount": 2**31}}, "spec.execution.parallelReplicaCount: "),
            ({"execution": {"stallTimeout": "0s"}}, "spec.execution.stallTimeout: "),
            ({"execution": {"stallTimeout": "soon"}}, "spec.execution.stallTimeout: "),
            ({"topics": {"include": ["a" * 513]}}, "spec.topics.include[0]: "),
            ({"throttle": {}}, "spec.throttle: "),
            ({"throttle": {"unlimited": True, "leaderRate": "1Mi"}}, "spec.throttle: "),
            ({"throttle": {"unlimited": False}}, "spec.throttle.unlimited: "),
            ({"throttle": {"leaderRate": -1}}, "spec.throttle.leaderRate: "),
            ({"throttle": {"leaderRate": 0}}, "spec.throttle.leaderRate: "),
            ({"throttle": {"followerRate": "1.5"}}, "spec.throttle.followerRate: "),
            ({"throttle": {"followerRate": "2048Ti"}}, "spec.throttle.followerRate: "),
            ({"throttle": {"followerRate": True}}, "spec.throttle.followerRate: "),
            ({"brokers": {"include": [1, 2], "decommission": [2]}}, "spec.brokers: "),
            ({"brokers": {"include": [1, 1]}}, "spec.brokers.include: names broker 1 twice"),
            (
                {"goals": {"load": {"resources": [{"name": "Disk"}, {"name": "BytesIn"}, {"name": "Disk"}]}}},
                "spec.goals.load.resources: names resource Disk twice",
            ),
            (
                {"goals": {"logDirs": {"drain": [{"broker": 2, "path": "/a"}] * 2}}},
                "spec.goals.logDirs.drain: names log dir /a of broker 2 twice",
            ),
            ({"brokers": {"decommission": [-1]}}, "spec.brokers.decommission[0]: "),
            ({"strategy": "Better"}, "spec.strategy: "),
            ({"strategy": "Assignment"}, "spec: assignment is required with the strategy Assignment"),
            (
                {"assignment": {"configMapRef": {"name": "a"}}},
                "spec: assignment is required with the strategy Assignment",
            ),
            ({"strategy": "PreferredLeaders", "replicationFactor": 3}, "spec: replicationFactor is not allowed"),
            ({"strategy": "PreferredLeaders", "goals": {"leaders": False}}, "spec: goals.leaders cannot be false"),
            ({"strategy": "Generate", "goals": {"balance": "Both"}}, "spec: goals.balance, load, maxReplicaMoves"),
            (
                {"strategy": "ForcedMovesOnly", "goals": {"maxDataToMove": "1Ti"}},
                "spec: goals.balance, load, maxReplica",
            ),
            ({"goals": {"minimumGain": 101}}, "spec.goals.minimumGain: "),
            ({"goals": {"maxDataToMove": 0}}, "spec.goals.maxDataToMove: "),
            ({"replicationFactor": 0}, "spec.replicationFactor: "),
            ({"offlinePolicy": "Wait"}, "spec.offlinePolicy: "),
            ({"kafka": {"bootstrapServers": "nowhere"}}, "spec.kafka.bootstrapServers: "),
            ({"kafka": {"bootstrapServers": "a:1", "sasl": {"mechanism": "PLAIN"}}}, "spec.kafka.sasl.secretRef: "),
        ],
    )
    def test_names_the_field(self, parts: dict[str, Any], path: str) -> None:
        with pytest.raises(Refused) as refused:
            parse_rebalance(body(**parts))
        assert refused.value.reason == "InvalidSpec"
        assert refused.value.message.startswith(path)

    def test_expressions_are_not_compiled(self) -> None:
        """Those of all resources are read when the operator starts, and 300 of one may take half a second."""
        given = {"include": ["a", "["], "exclude": ["(?=a)"], "pinned": ["("]}
        assert parse_rebalance(body(topics=given)).spec.topics.include == ("a", "[")
        with pytest.raises(Refused) as refused:
            parse_spec(body(topics=given)["spec"])
        assert [problem.partition(":")[0] for problem in refused.value.message.split("; ")] == [
            "spec.topics.include[1]",
            "spec.topics.exclude[0]",
            "spec.topics.pinned[0]",
        ]

    def test_all_problems_at_once(self) -> None:
        with pytest.raises(Refused) as refused:
            parse_rebalance(body(bogus=1, strategy="X"))
        assert "spec.bogus" in refused.value.message
        assert "spec.strategy" in refused.value.message

    def test_missing_spec(self) -> None:
        with pytest.raises(Refused, match=r"^spec\.kafka: "):
            parse_rebalance({"metadata": body()["metadata"]})


class TestConnection:
    """TLS and SASL refer to Secrets and use the usual keys."""

    def test_secrets(self) -> None:
        kafka = spec(
            kafka={
                "bootstrapServers": "a:1",
                "tls": {"caSecretRef": {"name": "ca"}, "clientSecretRef": {"name": "client"}},
                "sasl": {"mechanism": "SCRAM-SHA-512", "secretRef": {"name": "user"}},
            }
        ).kafka
        assert kafka.tls is not None
        assert kafka.tls.ca_secret_ref is not None
        assert kafka.tls.ca_secret_ref.key == "ca.crt"
        assert kafka.sasl is not None
        assert kafka.sasl.mechanism is SaslMechanism.SCRAM_SHA_512


class TestPlanningHash:
    """The hash covers only what determines the plan, not speed, throttle or the order of list items."""

    def test_same_plan(self) -> None:
        one = spec(brokers={"include": [2, 1]}, topics={"include": ["b", "a"]})
        other = spec(
            brokers={"include": [1, 2], "decommission": []},
            topics={"include": ["a", "b"]},
            goals={"leaders": True},
            execution={"parallelReplicaCount": 3, "suspend": True},
            throttle={"unlimited": True},
            deletionPolicy="Abandon",
        )
        assert planning_hash(one) == planning_hash(other)

    @pytest.mark.parametrize(
        "parts",
        [
            {"brokers": {"decommission": [4]}},
            {"brokers": {"include": [4]}},
            {"topics": {"include": ["a"]}},
            {"topics": {"exclude": ["a"]}},
            {"goals": {"leaders": False}},
            {"goals": {"rackAwareness": "Disabled"}},
            {"goals": {"minimumGain": 5}},
            {"goals": {"maxReplicaMoves": 0}},
            {"goals": {"maxDataToMove": "1Ti"}},
            {"goals": {"balance": "PerTopic"}},
            {"goals": {"load": {"resources": [{"name": "Disk"}]}}},
            {"topics": {"pinned": ["a"]}},
            {"strategy": "Generate"},
            {"strategy": "Assignment", "assignment": {"configMapRef": {"name": "a"}}},
            {"replicationFactor": 3},
            {"offlinePolicy": "Refuse"},
        ],
    )
    def test_another_plan(self, parts: dict[str, Any]) -> None:
        assert planning_hash(spec(**parts)) != planning_hash(spec())

    def test_load_goals(self) -> None:
        """Their order is their priority; a default that is written out changes nothing."""
        disk, rate = {"name": "Disk"}, {"name": "BytesIn", "band": "10%"}
        written = {"name": "Disk", "band": "10%", "capacityLimit": "80%"}
        found = [spec(goals={"load": {"resources": rows}}) for rows in ([disk, rate], [rate, disk], [written, rate])]
        first, swapped, the_same = map(planning_hash, found)
        assert first != swapped
        assert first == the_same

    def test_the_empty_part_has_a_fixed_hash(self) -> None:
        """New fields in a later version must not supersede a running plan: unset fields do not change the hash."""
        assert planning_hash(spec()) == "sha256:b230b308213e19dff09170a11add4c65dbf03079936808236dc44b015e5c7ada"


class TestStatus:
    """The operator owns the status; an unreadable status never stops it."""

    def test_unreadable_counts_as_none(self) -> None:
        read = parse_rebalance({**body(), "status": {"observedGeneration": "x"}})
        assert read.status == KafkaRebalanceStatus()

    def test_progress_of_an_operator_that_counted_no_steps(self) -> None:
        """Otherwise the API server would refuse every patch of the spec until the status is written anew."""
        none = {"total": 1, "completed": 0}
        progress = {
            "percent": 0,
            "partitions": {**none, "inFlight": 0, "waiting": 1},
            "replicaMoves": none,
            "bytes": {"total": 1, "moved": 0},
        }
        read = parse_rebalance({**body(), "status": {"observedGeneration": 1, "progress": progress}})
        assert read.status.progress is not None
        assert read.status.progress.steps is None

    def test_unknown_fields_are_left_out(self) -> None:
        read = parse_rebalance({**body(), "status": {"observedGeneration": 3, "fromTheFuture": 1}})
        assert read.status.observed_generation == 3

    def test_the_patch_removes_what_is_no_longer_there(self) -> None:
        patch = KafkaRebalanceStatus(observed_generation=2).as_patch()["status"]
        assert patch["observedGeneration"] == 2
        assert patch["plan"] is None
        assert patch["currentBatch"] == []


class TestMetadata:
    """A deletion is detected by its timestamp, because it also increments the generation."""

    def test_deleting(self) -> None:
        raw = body()
        assert not parse_rebalance(raw).metadata.deleting
        raw["metadata"]["deletionTimestamp"] = "2026-11-21T11:57:16Z"
        assert parse_rebalance(raw).metadata.deleting


def test_annotations_of_others_are_not_kept() -> None:
    """They may have 256 KiB, and users may create many resources."""
    annotations = {"other": "x", "kafkarebalance.dev/other": "x", UNDO_ANNOTATION: "x" * 5_000}
    found = parse_metadata({"metadata": {"name": "a", "namespace": "n", "uid": "u", "annotations": annotations}})
    assert found.annotations == {UNDO_ANNOTATION: "x" * (MAX_TEXT + 1)}
