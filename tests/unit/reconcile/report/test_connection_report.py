"""The status of a KafkaConnection: reachable, permitted, and which Kafka it is."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.connection_resource import MAX_MISSING, KafkaConnectionStatus, LastSample
from kafka_rebalance.api.v1alpha1 import parse_connection
from kafka_rebalance.errors import Permanent, RebalanceError, Transient
from kafka_rebalance.kafka.least_permissions import MissingPermission
from kafka_rebalance.model.kafka_version import KafkaVersion
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.report.connection_report import ConnectionState, build_connection_status
from kafka_rebalance.reconcile.report.sampling_report import SamplingState, StoredSample

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
KAFKA_4_3 = KafkaVersion(30, 30)
ALTER = MissingPermission("Alter", "Cluster", "no step can be submitted")
HIDDEN = MissingPermission("Describe", "Topic", "plans do not see it", frozenset("abcde"))


def status(
    problem: RebalanceError | None = None,
    live: int | None = 3,
    version: KafkaVersion | None = KAFKA_4_3,
    missing: tuple[MissingPermission, ...] = (),
    before: KafkaConnectionStatus | None = None,
) -> KafkaConnectionStatus:
    body = {
        "metadata": {"name": "production", "namespace": "kafka", "uid": "u", "generation": 2},
        "spec": {"bootstrapServers": "kafka:9092"},
        "status": before.model_dump(mode="json", by_alias=True, exclude_none=True) if before else {},
    }
    return build_connection_status(
        parse_connection(body), ConnectionState("c-1", live, problem, version, missing), now=NOW
    )


def reason(found: KafkaConnectionStatus, kind: ConditionType) -> tuple[str, str] | None:
    condition = find_condition(found.conditions, kind)
    return None if condition is None else (condition.status, condition.reason)


class TestPermissions:
    def test_what_is_missing_is_named(self) -> None:
        found = status(missing=(ALTER, HIDDEN))
        assert found.missing_permissions == ("Alter on the cluster", "Describe on topics a, b, c and 2 more")
        assert reason(found, ConditionType.PERMITTED) == ("False", Reason.PERMISSIONS_MISSING)

    def test_nothing_is_said_when_they_are_granted(self) -> None:
        """The condition goes, and so does the list."""
        found = status(before=status(missing=(ALTER,)))
        assert (found.missing_permissions, reason(found, ConditionType.PERMITTED)) == ((), None)

    def test_the_list_is_bounded(self) -> None:
        assert len(status(missing=(ALTER,) * 9).missing_permissions) == MAX_MISSING


class TestVersion:
    def test_of_a_recorded_version(self) -> None:
        found = status()
        assert found.kafka_version == "4.3"
        assert reason(found, ConditionType.VERSION_RECORDED) == ("True", Reason.VERSION_RECORDED)

    def test_stays_while_nobody_answers(self) -> None:
        before = status()
        found = status(Transient(Reason.KAFKA_UNREACHABLE, "down"), None, None, before=before)
        assert (found.kafka_version, found.brokers) == (before.kafka_version, before.brokers)


class TestReachable:
    @pytest.mark.parametrize(
        ("problem", "reachable"),
        [
            (None, ("True", Reason.CONNECTED)),
            (Transient(Reason.KAFKA_UNREACHABLE, "down"), ("False", Reason.KAFKA_UNREACHABLE)),
            (Permanent(Reason.CLUSTER_OWNED_ELSEWHERE, "another owner"), ("True", Reason.CLUSTER_OWNED_ELSEWHERE)),
        ],
    )
    def test_a_refusal_comes_from_a_cluster_that_answers(
        self, problem: RebalanceError | None, reachable: tuple[str, str]
    ) -> None:
        assert reason(status(problem), ConditionType.REACHABLE) == reachable


class TestSampling:
    SAMPLED = SamplingState().with_stored(StoredSample(NOW, 12, "no answer from brokers 3"))
    FAILED = SAMPLED.with_failure(Transient(Reason.LAKE_UNUSABLE, "the sample was not stored"))

    def found(
        self,
        sampling: SamplingState | None,
        spec: dict[str, Any] | None,
        before: KafkaConnectionStatus | None = None,
        problem: RebalanceError | None = None,
    ) -> KafkaConnectionStatus:
        body = {
            "metadata": {"name": "production", "namespace": "kafka", "uid": "u", "generation": 2},
            "spec": {"bootstrapServers": "kafka:9092", "sampling": spec},
            "status": before.model_dump(mode="json", by_alias=True, exclude_none=True) if before else {},
        }
        return build_connection_status(
            parse_connection(body), ConnectionState("c-1", 3, problem, sampling=sampling), now=NOW
        )

    def test_a_sample_says_what_it_lacks(self) -> None:
        """It is stored all the same, without these rows."""
        found = self.found(self.SAMPLED, {"interval": "5m"})
        condition = find_condition(found.conditions, ConditionType.SAMPLING)
        assert condition is not None
        assert (condition.status, condition.message) == (
            *("True", "one sample each 5m is stored; no answer from brokers 3"),
        )
        assert found.last_sample == LastSample(time=NOW, rows=12)

    def test_a_failure_keeps_the_last_sample_that_was_stored(self) -> None:
        """And leaves Ready alone."""
        found = self.found(self.FAILED, {})
        assert reason(found, ConditionType.SAMPLING) == ("False", Reason.LAKE_UNUSABLE)
        assert reason(found, ConditionType.READY) == ("True", Reason.CONNECTED)
        assert found.last_sample == LastSample(time=NOW, rows=12)

    def test_after_a_restart_the_status_stays_until_the_first_sample(self) -> None:
        before = self.found(self.FAILED, {})
        found = self.found(SamplingState(), {}, before)
        assert reason(found, ConditionType.SAMPLING) == ("False", Reason.LAKE_UNUSABLE)
        assert found.last_sample == before.last_sample

    def test_while_the_cluster_is_not_its_own(self) -> None:
        """Nothing is sampled, and the reason is that of Ready."""
        found = self.found(None, {}, problem=Permanent(Reason.CONFLICTED, "another owner"))
        assert reason(found, ConditionType.SAMPLING) == ("False", Reason.CONFLICTED)

    def test_nothing_is_said_where_no_samples_are_asked_for(self) -> None:
        found = self.found(None, None, self.found(self.SAMPLED, {}))
        assert (reason(found, ConditionType.SAMPLING), found.last_sample) == (None, None)
