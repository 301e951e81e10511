"""Overrides by annotations: they hold instead of the spec, are shown, and end by themselves."""

import json
from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api.fields import format_time
from kafka_rebalance.api.overrides import FREEZE_OVERRIDE, SUSPEND_OVERRIDE, THROTTLE_OVERRIDE
from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, REBALANCES, parse_throttle

RATES = {"leaderRate": 1000, "followerRate": 2000}


def until(op, seconds, **values):
    return json.dumps({**values, "until": format_time(op.clock.at + timedelta(seconds=seconds))})


def limits(op, annotations=None, **spec):
    """The cluster's throttle resource, as it is in Git and with these annotations."""
    metadata = {"name": "limits", "namespace": "kafka", "uid": "u-t", "creationTimestamp": NOON.isoformat()}
    metadata |= {"annotations": annotations or {}, "finalizers": ["kafkarebalance.dev/rollback"]}
    spec = {"kafka": {"bootstrapServers": "kafka:9092"}, **spec}
    body = op.kube.create(REASSIGNMENT_THROTTLES, {"metadata": metadata, "spec": spec})
    op.engine.see_throttles({"u-t": parse_throttle(body)})


def reported(op):
    """The status of the throttle resource."""
    return op.kube.resources[REASSIGNMENT_THROTTLES, "kafka", "limits"]["status"]


def overridden(status):
    return next((row for row in status["conditions"] if row["type"] == "Overridden"), None)


@pytest.fixture
async def op():
    """One copy is in flight, and another one waits for it."""
    op = OperatorInMemory(KafkaInMemory([1, 2, 3], t=[[1, 2], [2, 1]]))
    op.kafka.slow = {3}
    one = {"parallelPartitionCount": 1}
    op.assign(("t", 0, [1, 3]), ("t", 1, [2, 3]), throttle=RATES, execution=one)
    await op.until_true(lambda: op.kafka.flying)
    return op


class TestSuspend:
    async def test_until_it_ends(self, op):
        """The spec is applied again each second, as by a controller, and changes nothing of it."""
        op.order(SUSPEND_OVERRIDE, until(op, 20, suspend=True, reason="broker 3 swaps disks"))
        op.kafka.arrive()
        await op.until("Suspended")
        said = "spec.suspend is set by an override until 2026-"
        assert op.message.startswith(said)
        sent = list(op.kafka.altered)
        shown = op.status["overrides"]
        assert [(row["setting"], row["value"], row["reason"]) for row in shown] == [
            ("spec.suspend", "true", "broker 3 swaps disks")
        ]
        assert (overridden(op.status)["status"], overridden(op.status)["reason"]) == ("True", "Overridden")
        while op.state == "Suspended":
            op.edit(execution={"parallelPartitionCount": 1})
            if op.state == "Suspended":
                assert op.kafka.altered == sent
            await op.round()
        await op.until("Succeeded")
        assert (op.status["overrides"], overridden(op.status)) == ([], None)

    async def test_it_lets_go_on_what_the_spec_suspends(self, op):
        op.edit(suspend=True)
        op.kafka.arrive()
        await op.until("Suspended")
        op.order(SUSPEND_OVERRIDE, until(op, 1000, suspend=False))
        await op.until("Succeeded")

    async def test_an_event_during_a_round_does_not_end_it(self, op):
        """The next version of the resource has the override from the first moment."""
        op.order(SUSPEND_OVERRIDE, until(op, 1000, suspend=True))
        await op.round()
        op.edit(priority=3)
        assert op.rebalance.desired.spec.suspended
        op.order("another", "annotation")
        assert op.rebalance.desired.spec.suspended

    async def test_a_value_that_cannot_be_read(self, op):
        op.order(SUSPEND_OVERRIDE, "yes please")
        await op.round()
        found = overridden(op.status)
        assert (found["status"], found["reason"]) == ("False", "OverrideInvalid")
        assert (
            "must be a JSON object, found 'yes please' (expected value at line 1 column 1); it has no effect"
            in found["message"]
        )
        assert op.state == "Rebalancing"


class TestThrottle:
    async def test_until_it_ends(self, op):
        """The copy in flight gets the rate of the override, then that of the spec again."""
        assert op.kafka.rates(3) == ("1000", "2000")
        op.order(THROTTLE_OVERRIDE, until(op, 10, followerRate=50))
        await op.until_true(lambda: op.kafka.rates(3) == ("1000", "50"))
        await op.round()
        assert op.status["throttle"]["source"] == "the override of spec.throttle"
        await op.until_true(lambda: op.kafka.rates(3) == ("1000", "2000"))
        await op.round()
        assert op.status["throttle"]["source"] == "spec.throttle"

    async def test_another_rate_that_is_shown_alike(self, op):
        """It takes effect even while the spec is invalid and the last valid spec is in force."""
        op.order(THROTTLE_OVERRIDE, until(op, 1000, followerRate=100_000))
        await op.until_true(lambda: op.kafka.rates(3) == ("1000", "100000"))
        op.edit(strategy="Guess")
        ends = json.loads(op.kube.resources[REBALANCES, "kafka", "r"]["metadata"]["annotations"][THROTTLE_OVERRIDE])
        op.order(THROTTLE_OVERRIDE, json.dumps({**ends, "followerRate": 100_010}))
        await op.until_true(lambda: op.kafka.rates(3) == ("1000", "100010"))

    async def test_of_the_cluster(self, op):
        """It limits every rebalance, and the resource says so."""
        limits(op, {THROTTLE_OVERRIDE: until(op, 15, leaderRate=70, followerRate=70)}, leaderRate=900)
        await op.until_true(lambda: op.kafka.rates(3) == ("70", "70"))
        await op.round()
        assert reported(op)["overrides"][0]["value"] == "70 B/s"
        assert overridden(reported(op))["status"] == "True"
        await op.until_true(lambda: op.kafka.rates(3) == ("900", "2000"))
        await op.round()
        assert (reported(op)["overrides"], overridden(reported(op))) == ([], None)


class TestFreeze:
    async def test_until_it_ends(self, op):
        limits(op, {FREEZE_OVERRIDE: until(op, 20, freeze=True)})
        op.kafka.arrive()
        await op.until("Frozen")
        assert "kafka/limits by an override until 2026-" in op.message
        sent = list(op.kafka.altered)
        await op.until("Rebalancing")
        assert len(op.kafka.altered) > len(sent)

    async def test_it_lets_go_on_what_git_freezes(self, op):
        limits(op, {FREEZE_OVERRIDE: until(op, 1000, freeze=False)}, freeze=True)
        op.kafka.arrive()
        await op.until("Succeeded")
