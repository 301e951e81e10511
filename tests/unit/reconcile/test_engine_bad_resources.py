"""A problem of one resource does not affect the other rebalances of the cluster."""

import json

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api import topic_patterns
from kafka_rebalance.api.overrides import FREEZE_OVERRIDE, SUSPEND_OVERRIDE, THROTTLE_OVERRIDE
from kafka_rebalance.api.v1alpha1 import (
    COMPLETED_ANNOTATION,
    REASSIGNMENT_THROTTLES,
    REBALANCES,
    KafkaReassignmentThrottle,
    parse_throttle,
)
from kafka_rebalance.reconcile import rounds
from kafka_rebalance.reconcile.act import resources
from kafka_rebalance.reconcile.runs.opening import Runs
from kafka_rebalance.reconcile.state.rebalance import Rebalance

KAFKA = {"kafka": {"bootstrapServers": "kafka:9092"}}
DEEP = "[" * 100_000
LATE = "9999-12-31T23:59:59-23:59"


class TwoTeams(OperatorInMemory):
    """``bad/r`` moves topic t, ``good/r`` moves topic u."""

    def __init__(self):
        super().__init__(KafkaInMemory([1, 2, 3], t=[[1, 2], [1, 2]], u=[[1, 2], [1, 2]]))

    def add(self, team, topic, annotations=None, **spec):
        metadata = {"name": "r", "namespace": team, "uid": f"u-{team}", "creationTimestamp": NOON.isoformat()}
        metadata["annotations"] = annotations or {}
        spec = {**KAFKA, "topics": {"include": [topic]}, "brokers": {"decommission": [1]}, **spec}
        self.see(self.kube.create(REBALANCES, {"metadata": metadata, "spec": spec}))

    def limits(self, annotations, **status):
        metadata = {"name": "limits", "namespace": "bad", "uid": "u-limits", "annotations": annotations}
        metadata["finalizers"] = ["kafkarebalance.dev/rollback"]
        body = self.kube.create(REASSIGNMENT_THROTTLES, {"metadata": metadata, "spec": {**KAFKA, "leaderRate": 900}})
        self.engine.see_throttles({"u-limits": parse_throttle({**body, "status": status})})

    def conditions(self, team, plural=REBALANCES, name="r"):
        found = self.kube.resources[plural, team, name].get("status", {}).get("conditions", ())
        return {condition["type"]: condition for condition in found}

    def said(self, team):
        return self.conditions(team).get("Ready", {}).get("reason")

    async def until_said(self, team, *reasons):
        """No round fails on the way."""
        for _ in range(60):
            if self.said(team) in reasons:
                return
            await self.round()
            assert self.engine.problem is None
            assert not self.engine.figures.problem
        raise AssertionError(self.conditions(team))


def override(**values):
    return json.dumps({"until": LATE, **values})


class TestText:
    """Text that every user who may edit the resource can write."""

    @pytest.mark.parametrize(
        ("annotation", "text"),
        [
            (THROTTLE_OVERRIDE, DEEP),
            (SUSPEND_OVERRIDE, DEEP),
            (THROTTLE_OVERRIDE, override(leaderRate=1)),
            (SUSPEND_OVERRIDE, override(suspend=True)),
        ],
        ids=["deep throttle", "deep suspend", "late throttle", "late suspend"],
    )
    async def test_an_override(self, annotation, text):
        op = TwoTeams()
        op.add("bad", "t", {annotation: text})
        op.add("good", "u")
        await op.until_said("good", "Succeeded")
        await op.until_said("bad", "Succeeded")
        found = op.conditions("bad")["Overridden"]
        assert (found["status"], found["reason"]) == ("False", "OverrideInvalid")
        assert f"metadata.annotations[{annotation}]" in found["message"]

    @pytest.mark.parametrize("annotation", [THROTTLE_OVERRIDE, FREEZE_OVERRIDE])
    @pytest.mark.parametrize("text", [DEEP, override(leaderRate=1), override(freeze=True)])
    async def test_an_override_of_the_limits(self, annotation, text):
        """The limits of the spec stay in force."""
        op = TwoTeams()
        op.limits({annotation: text})
        op.add("good", "u")
        op.kafka.slow = {3}
        await op.until_said("good", "Rebalancing")
        await op.round()
        assert op.kafka.rates(3)[0] == "900"
        assert op.conditions("bad", REASSIGNMENT_THROTTLES, "limits")["Overridden"]["reason"] == "OverrideInvalid"

    @pytest.mark.parametrize(
        "text",
        [
            DEEP,
            "NaN",
            "\ud800",
            '{"partitions": [' + DEEP,
            '{"version": NaN, "partitions": []}',
            '{"partitions": [{"topic": "t", "partition": 1e999, "replicas": [1]}]}',
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [' + "9" * 4000 + "]}]}",
            '{"partitions": [{"topic": "t", "partition": ' + "9" * 5000 + ', "replicas": [1]}]}',
        ],
        ids=["deep", "no number", "surrogate", "deep row", "no version", "infinite", "large broker", "large partition"],
    )
    async def test_the_assignment_in_a_config_map(self, text):
        op = TwoTeams()
        op.kube.user_config_maps["bad", "lists"] = {"k": text}
        lists = {"configMapRef": {"name": "lists", "key": "k"}}
        op.add("bad", "t", strategy="Assignment", assignment=lists, brokers={})
        op.add("good", "u")
        await op.until_said("good", "Succeeded")
        await op.until_said("bad", "AssignmentInvalid")

    async def test_expressions_that_take_long(self, monkeypatch):
        monkeypatch.setattr(topic_patterns, "_too_slow", type(topic_patterns._too_slow)())
        monkeypatch.setattr(topic_patterns, "_MOST_SECONDS", 0.05)
        op = TwoTeams()
        for topic in ("a" * 248, "a" * 249):
            op.kafka.create(topic, [[1, 2]])
        op.add("bad", "t", topics={"include": [f"((a{{0,10}}){{0,10}}){{0,10}}{n}" for n in range(100)]})
        op.add("good", "u")
        await op.until_said("good", "Succeeded")
        await op.until_said("bad", "InvalidSpec")
        assert "simpler" in op.conditions("bad")["Ready"]["message"]

    @pytest.mark.parametrize(
        "window",
        [
            {"cron": "0 0 30 2 *", "duration": "999d9999h99999m999999s"},
            {"cron": "*/99999999999999 * * * *", "duration": "1s"},
            {"cron": "\u0663 * * * *", "duration": "1s"},
            {"cron": "0 1 * * *", "duration": "5h", "timeZone": "Europe"},
            {"cron": "0 1 * * *", "duration": "5h", "timeZone": "/etc/passwd"},
        ],
        ids=["never", "large step", "other digits", "a directory", "a path"],
    )
    async def test_a_window(self, window):
        op = TwoTeams()
        op.kafka.slow = {3}
        op.add("bad", "t", execution={"windows": [window]}, throttle={"unlimited": True})
        op.add("good", "u", throttle={"unlimited": True})
        await op.until_said("good", "Rebalancing")
        op.kafka.arrive()
        await op.until_said("good", "Succeeded")
        assert op.said("bad") in {"OutsideWindow", "InvalidSpec"}

    @pytest.mark.parametrize(
        "changed",
        [{}, {"lastTransitionTime": LATE}, {"lastTransitionTime": "0001-01-01T00:00:00Z"}, {"status": "Maybe"}],
        ids=["many", "late", "early", "other status"],
    )
    async def test_the_status(self, changed):
        """For a user who may also write the status."""
        row = {"status": "True", "reason": "Theirs", "message": "", "observedGeneration": 1, **changed}
        row = {"lastTransitionTime": "2026-01-01T00:00:00Z", **row}
        rows = [{"type": "Ready", **row}, *({"type": f"example.com/{number}", **row} for number in range(19))]
        op = TwoTeams()
        op.limits({}, conditions=rows)
        op.add("bad", "t")
        op.see({**op.kube.resources[REBALANCES, "bad", "r"], "status": {"conditions": rows, "completedAt": LATE}})
        op.add("good", "u")
        await op.until_said("good", "Succeeded")
        await op.until_said("bad", "Succeeded")
        assert op.conditions("bad", REASSIGNMENT_THROTTLES, "limits")["Ready"]["reason"] != "InternalError"

    @pytest.mark.parametrize("at", [LATE, "0001-01-01T00:00:00+23:59", DEEP])
    async def test_the_note_of_an_earlier_run(self, at):
        op = TwoTeams()
        op.add("bad", "t")
        await op.until_said("bad", "Succeeded")
        await op.round()
        annotations = op.kube.resources[REBALANCES, "bad", "r"]["metadata"]["annotations"]
        key = json.dumps({**json.loads(annotations[COMPLETED_ANNOTATION]), "completedAt": at})
        again = TwoTeams()
        again.add("bad", "t", {COMPLETED_ANNOTATION: DEEP if at == DEEP else key})
        again.add("good", "u")
        await again.until_said("good", "Succeeded")


class TestDefects:
    """Unexpected errors of the operator that concern only the resource in namespace bad."""

    @pytest.fixture
    def op(self):
        """The copies of good go on."""
        op = TwoTeams()
        op.add("bad", "t")
        op.add("good", "u")
        return op

    @pytest.mark.parametrize(
        ("where", "name"),
        [
            (Rebalance, "look_at"),
            (rounds, "replanning_for_spec"),
            (rounds, "direction_of"),
            (Runs, "open_planned_run"),
            (Runs, "start_planning"),
            (rounds, "step_block_for"),
            (rounds, "teardown_of"),
            (rounds, "advance_of"),
            (rounds, "only_kept_copies_in_flight"),
            (resources, "build_status"),
        ],
        ids=lambda part: part if isinstance(part, str) else "",
    )
    async def test_of_a_rebalance(self, op, monkeypatch, where, name):
        """Its status reports the error, and it continues when the error is gone."""
        works = getattr(where, name)
        monkeypatch.setattr(where, name, failing_for("bad/r", works))
        await op.until_said("good", "Succeeded")
        await op.until_said("bad", "InternalError")
        assert op.conditions("bad")["Ready"]["message"] == "unexpected error, see the operator's log; trying again"
        monkeypatch.setattr(where, name, works)
        await op.until_said("bad", "Succeeded")

    async def test_of_the_overrides_of_the_limits(self, op, monkeypatch):
        """The limits of the spec stay in force."""
        works = KafkaReassignmentThrottle.as_of
        monkeypatch.setattr(KafkaReassignmentThrottle, "as_of", failing_for("bad/limits", works))
        op.kafka.slow = {3}
        op.limits({})
        await op.until_said("good", "Rebalancing")
        await op.round()
        assert op.kafka.rates(3)[0] == "900"
        found = op.conditions("bad", REASSIGNMENT_THROTTLES, "limits")["Overridden"]
        assert (found["status"], found["reason"]) == ("False", "OverrideInvalid")
        monkeypatch.setattr(KafkaReassignmentThrottle, "as_of", works)
        await op.round()
        assert "Overridden" not in op.conditions("bad", REASSIGNMENT_THROTTLES, "limits")

    async def test_of_the_status_of_the_limits(self, op, monkeypatch):
        works = resources.build_throttle_status
        monkeypatch.setattr(resources, "build_throttle_status", failing_for("bad/limits", works))
        op.limits({})
        await op.until_said("good", "Succeeded")
        found = op.conditions("bad", REASSIGNMENT_THROTTLES, "limits")
        assert found["Ready"]["reason"] == "InternalError"
        monkeypatch.setattr(resources, "build_throttle_status", works)
        await op.round()
        assert op.conditions("bad", REASSIGNMENT_THROTTLES, "limits")["Ready"]["reason"] != "InternalError"


def failing_for(name, works):
    """``works``, which raises for the resource of this name."""

    def call(*arguments, **options):
        if any(getattr(argument, "name", None) == name for argument in arguments):
            raise OverflowError("date value out of range")
        return works(*arguments, **options)

    return call
