"""Overrides by annotations: what wins over the spec, until when, and what cannot be read."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from kafka_rebalance.api.overrides import (
    FREEZE_OVERRIDE,
    SUSPEND_OVERRIDE,
    THROTTLE_OVERRIDE,
    overridden_rebalance,
)
from kafka_rebalance.api.v1alpha1 import parse_spec, parse_throttle, planning_hash

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
LATER = "2026-03-04T14:00:00Z"
KAFKA = {"kafka": {"bootstrapServers": "kafka:9092"}}


def rebalance(spec, annotations, now=NOON):
    return overridden_rebalance(parse_spec({**KAFKA, **spec}), texts(annotations), now)


def throttle(spec, annotations, now=NOON):
    metadata = {"name": "limits", "namespace": "kafka", "uid": "u", "annotations": texts(annotations)}
    return parse_throttle({"metadata": metadata, "spec": {**KAFKA, **spec}}).as_of(now)


def texts(annotations):
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in annotations.items()}


class TestSuspend:
    @pytest.mark.parametrize("spec", [{}, {"suspend": True}, {"execution": {"suspend": True}}])
    @pytest.mark.parametrize("suspend", [True, False])
    def test_it_wins(self, spec, suspend):
        """Over either field of the spec."""
        found = rebalance(spec, {SUSPEND_OVERRIDE: {"suspend": suspend, "until": LATER, "reason": "disk of 4"}})
        assert found.spec.suspended is suspend
        shown = f"spec.suspend is {str(suspend).lower()} until 2026-03-04T14:00:00Z (disk of 4)"
        assert ([str(row) for row in found.in_force], found.problems) == ([shown], ())

    def test_it_ends(self):
        annotations = {SUSPEND_OVERRIDE: {"suspend": True, "until": LATER}}
        assert rebalance({}, annotations, NOON + timedelta(hours=1, minutes=59)).spec.suspended
        ended = rebalance({}, annotations, NOON + timedelta(hours=2))
        assert (ended.spec.suspended, ended.in_force) == (False, ())

    def test_nothing_else_changes(self):
        given = parse_spec({**KAFKA, "execution": {"parallelPartitionCount": 3}, "brokers": {"decommission": [4]}})
        found = rebalance(
            {"execution": {"parallelPartitionCount": 3}, "brokers": {"decommission": [4]}},
            {SUSPEND_OVERRIDE: {"suspend": True, "until": LATER}},
        )
        assert found.spec.execution.parallel_partition_count == 3
        assert planning_hash(found.spec) == planning_hash(given)


class TestThrottle:
    @pytest.mark.parametrize(
        ("spec", "override", "expected", "shown"),
        [
            (None, {"leaderRate": "1Mi"}, {"leaderRate": "1Mi"}, "leaderRate 1.0 MiB/s"),
            (
                {"leaderRate": "9Mi", "logDirRate": "5Mi"},
                {"leaderRate": "1Mi", "followerRate": "1Mi"},
                {"leaderRate": "1Mi", "followerRate": "1Mi", "logDirRate": "5Mi"},
                "1.0 MiB/s",
            ),
            ({"unlimited": True}, {"followerRate": "1Mi"}, {"followerRate": "1Mi"}, "followerRate 1.0 MiB/s"),
            ({"leaderRate": "9Mi"}, {"unlimited": True}, {"unlimited": True}, "unlimited"),
        ],
    )
    def test_rates_that_are_named(self, spec, override, expected, shown):
        """The others stay, as with the command."""
        given = {} if spec is None else {"throttle": spec}
        found = rebalance(given, {THROTTLE_OVERRIDE: {**override, "until": LATER}})
        assert found.spec.throttle == parse_spec({**KAFKA, "throttle": expected}).throttle
        assert [(row.setting, row.value) for row in found.in_force] == [("spec.throttle", shown)]


class TestCluster:
    def test_rates(self):
        """Also of single brokers; a side that is not named stays."""
        rows = [{"id": 1, "leaderRate": "3Mi"}, {"id": 2, "leaderRate": "3Mi", "followerRate": "2Mi"}]
        found = throttle(
            {"leaderRate": "9Mi", "followerRate": "8Mi", "brokers": rows},
            {THROTTLE_OVERRIDE: {"leaderRate": "1Mi", "until": LATER}},
        )
        assert {broker: rates.leader for broker, rates in found.spec.rates_on([1, 2, 3]).items()} == {
            1: 2**20,
            2: 2**20,
            3: 2**20,
        }
        assert [rates.follower for rates in found.spec.rates_on([1, 2]).values()] == [8 * 2**20, 2 * 2**20]

    def test_unset(self):
        found = throttle({"leaderRate": "9Mi"}, {THROTTLE_OVERRIDE: {"leaderRate": -1, "until": LATER}})
        assert not found.spec.sets_rates
        assert [row.value for row in found.overrides] == ["unlimited"]

    @pytest.mark.parametrize("freeze", [True, False])
    def test_freeze(self, freeze):
        found = throttle({"freeze": not freeze}, {FREEZE_OVERRIDE: {"freeze": freeze, "until": LATER}})
        assert found.spec.freeze is freeze
        assert found.as_of(NOON + timedelta(hours=3)).spec.freeze is not freeze

    @pytest.mark.parametrize(
        ("before", "after"),
        [({"leaderRate": "100Mi"}, {"leaderRate": 100 * 2**20 + 2**18}), ({"leaderRate": -1}, {"followerRate": -1})],
        ids=["a rate that reads the same", "another side that reads the same"],
    )
    def test_another_value_that_is_shown_alike(self, before, after):
        """It takes effect even if the spec was not read again because it is invalid."""
        spec = {"leaderRate": "900Mi", "followerRate": "900Mi"}
        seen = throttle(spec, {THROTTLE_OVERRIDE: {**before, "until": LATER}})
        expected = throttle(spec, {THROTTLE_OVERRIDE: {**after, "until": LATER}})
        assert seen.overrides == expected.overrides
        assert seen.model_copy(update={"metadata": expected.metadata}).as_of(NOON).spec == expected.spec

    def test_nothing_to_override(self):
        """The same object, so that nothing is taken for a change."""
        found = throttle({"freeze": True}, {})
        assert found.as_of(NOON) is found


class TestProblems:
    @pytest.mark.parametrize(
        ("value", "problem"),
        [
            ("yes", "must be a JSON object, found 'yes'"),
            ("[]", "must be an object with suspend, until, reason"),
            ({"suspend": True}, ".until: is required"),
            ({"until": LATER}, ".suspend: is required"),
            ({"suspend": "true", "until": LATER}, ".suspend: must be true or false"),
            ({"suspend": True, "until": "tomorrow"}, ".until: "),
            ({"suspended": True, "until": LATER, "suspend": True}, "did you mean suspend?"),
        ],
    )
    def test_an_unreadable_annotation_has_no_effect(self, value, problem):
        """And says which annotation it is."""
        found = rebalance({"suspend": True}, {SUSPEND_OVERRIDE: value})
        assert found.spec.suspended
        assert problem in found.problems[0]
        assert found.problems[0].startswith(f"metadata.annotations[{SUSPEND_OVERRIDE}]")

    @pytest.mark.parametrize(
        ("until", "problem"),
        [
            ("2026-03-04T14:00:00", "must be a time with its zone"),
            ("9999-12-31T23:59:59-23:59", "must be a time that in UTC is within the years 1 to 9999"),
            ("0001-01-01T00:00:00+23:59", "must be a time that in UTC is within the years 1 to 9999"),
        ],
        ids=["without a zone", "too late", "too early"],
    )
    def test_a_time_that_cannot_be_written(self, until, problem):
        """A time without a zone is ambiguous; the others do not exist in UTC."""
        for found in (
            rebalance({}, {SUSPEND_OVERRIDE: {"suspend": True, "until": until}}).problems,
            throttle({}, {FREEZE_OVERRIDE: {"freeze": True, "until": until}}).override_problems,
        ):
            assert len(found) == 1
            assert f"].until: {problem}" in found[0]

    def test_the_last_time(self):
        found = rebalance({}, {SUSPEND_OVERRIDE: {"suspend": True, "until": "9999-12-31T23:59:59Z"}})
        assert str(found.in_force[0]) == "spec.suspend is true until 9999-12-31T23:59:59Z"

    @pytest.mark.parametrize("text", ["[" * 2000, '{"":' * 390 + "1" + "}" * 390, '{"suspend":' + "9" * 1900 + "}"])
    def test_what_no_parser_reads(self, text):
        """JSON that is nested too deeply, or has a number that is too long, is invalid like any other text."""
        for found in (
            rebalance({}, {THROTTLE_OVERRIDE: text, SUSPEND_OVERRIDE: text}).problems,
            throttle({}, {THROTTLE_OVERRIDE: text, FREEZE_OVERRIDE: text}).override_problems,
        ):
            assert len(found) == 2
            assert all(problem.startswith("metadata.annotations[kafkarebalance.dev/override-") for problem in found)

    def test_a_long_text_is_not_parsed(self):
        """Each round reads it, and thousands of unknown fields would take seconds."""
        many = {f"field{number}": True for number in range(9000)}
        found = rebalance({}, {SUSPEND_OVERRIDE: {"suspend": True, "until": LATER, **many}})
        assert found.problems == (f"metadata.annotations[{SUSPEND_OVERRIDE}]: must have at most 2000 characters",)

    def test_no_rate(self):
        for annotations in ({"until": LATER}, {"leaderRate": "1Mi", "unlimited": True, "until": LATER}):
            assert len(rebalance({}, {THROTTLE_OVERRIDE: annotations}).problems) == 1
        assert len(throttle({}, {THROTTLE_OVERRIDE: {"until": LATER}}).override_problems) == 1
