"""--override of suspend, resume, freeze, unfreeze and throttle: what they write is what the operator reads."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.cli.commands.resource_runs import body, program, spec_of, world

from kafka_rebalance.api.overrides import FREEZE_OVERRIDE, SUSPEND_OVERRIDE, THROTTLE_OVERRIDE
from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, REBALANCES, parse_rebalance, parse_throttle
from kafka_rebalance.reconcile.state.desired import Desired

LIMITS = body({"leaderRate": "50Mi"}, kind="KafkaReassignmentThrottle", name="limits")


def stored(kube, plural=REBALANCES, name="r"):
    return kube.resources[plural, "kafka", name]


def desired(kube, *, after=timedelta()):
    """The effective spec at that time, as the operator computes it."""
    return Desired.of(stored(kube)).as_of(datetime.now(UTC) + after)


def limits(kube, *, after=timedelta()):
    found = stored(kube, REASSIGNMENT_THROTTLES, "limits")
    return parse_throttle(found).as_of(datetime.now(UTC) + after)


def annotations(kube, plural=REBALANCES, name="r"):
    return stored(kube, plural, name)["metadata"].get("annotations") or {}


class TestSuspend:
    def test_it_ends_by_itself(self):
        """The spec stays as it is in Git."""
        kube = world(body())
        done = program(kube, "suspend", "r", "--override", "--for", "2h", "--reason", "disk of 4")
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith("KafkaRebalance kafka/r is suspended until 2")
        assert done.out.endswith("Z: no new step starts, steps in flight finish\n")
        assert "execution" not in spec_of(kube)
        assert json.loads(annotations(kube)[SUSPEND_OVERRIDE])["reason"] == "disk of 4"
        assert desired(kube, after=timedelta(minutes=119)).spec.suspended
        assert not desired(kube, after=timedelta(minutes=121)).spec.suspended

    def test_resumed(self):
        """Before the override expires, without its option."""
        kube = world(body())
        program(kube, "suspend", "r", "--override")
        assert desired(kube).spec.suspended
        assert program(kube, "resume", "r").out == "KafkaRebalance kafka/r is not suspended: it goes on\n"
        assert annotations(kube) == {}
        assert "already not suspended" in program(kube, "resume", "r").out

    def test_both(self):
        kube = world(body({"suspend": True, "execution": {"suspend": True}}))
        program(kube, "suspend", "r", "--override")
        assert program(kube, "resume", "r").code == 0
        assert not desired(kube).spec.suspended

    def test_over_what_git_suspends(self):
        kube = world(body({"suspend": True}))
        program(kube, "resume", "r", "--override")
        assert not desired(kube).spec.suspended
        assert desired(kube, after=timedelta(hours=2)).spec.suspended
        program(kube, "suspend", "r")
        assert desired(kube).spec.suspended

    def test_the_override_stays_when_the_spec_says_the_same(self):
        """A controller may take the field of the spec back."""
        kube = world(body())
        program(kube, "suspend", "r", "--override")
        program(kube, "suspend", "r")
        assert SUSPEND_OVERRIDE in annotations(kube)

    @pytest.mark.parametrize("value", ["yes", "null", "[]", '{"suspend": true}', '{"suspend": true, "until": "x"}'])
    def test_an_annotation_that_cannot_be_read(self, value):
        """It has no effect, so there is nothing to end; an override replaces it."""
        kube = world(body(annotations={SUSPEND_OVERRIDE: value}))
        assert "already not suspended" in program(kube, "resume", "r").out
        program(kube, "suspend", "r", "--override")
        assert desired(kube).spec.suspended


class TestThrottle:
    def test_it_ends_by_itself(self):
        kube = world(body({"throttle": {"leaderRate": "50Mi", "logDirRate": "7Mi"}}))
        done = program(kube, "throttle", "r", "--rate", "5Mi", "--override", "--for", "30m")
        assert (done.code, done.err) == (0, "")
        assert " is set until 2" in done.out
        found = desired(kube).spec.throttle
        assert (found.leader_rate, found.follower_rate, found.log_dir_rate) == (5 * 2**20, 5 * 2**20, 7 * 2**20)
        assert desired(kube, after=timedelta(minutes=31)).spec.throttle.leader_rate == 50 * 2**20

    def test_ended(self):
        kube = world(body())
        program(kube, "throttle", "r", "--unlimited", "--override")
        assert desired(kube).spec.throttle.unlimited
        done = program(kube, "throttle", "r", "--rate", "1Mi")
        assert done.err.startswith("warning: an override applies instead until 2")
        assert (
            program(kube, "throttle", "r", "--end-override").out == "the override of KafkaRebalance kafka/r has ended\n"
        )
        assert desired(kube).spec.throttle.leader_rate == 2**20
        assert "has no override" in program(kube, "throttle", "r", "--end-override").out

    def test_of_the_cluster(self):
        kube = world(LIMITS)
        assert program(kube, "throttle", "limits", "--cluster-wide", "--rate", "5Mi", "--override").code == 0
        found = limits(kube).spec
        assert (found.leader_rate, found.follower_rate) == (5 * 2**20, 5 * 2**20)
        assert limits(kube, after=timedelta(hours=2)).spec.follower_rate is None
        assert THROTTLE_OVERRIDE in annotations(kube, REASSIGNMENT_THROTTLES, "limits")
        program(kube, "throttle", "limits", "--cluster-wide", "--end-override")
        done = program(kube, "throttle", "limits", "--cluster-wide", "--unlimited")
        assert done.out == "the throttle of KafkaReassignmentThrottle kafka/limits is set: unlimited\n"
        assert not limits(kube).spec.sets_rates


class TestFreeze:
    def test_frozen_and_unfrozen(self):
        kube = world(LIMITS)
        assert " is frozen until 2" in program(kube, "freeze", "--override", "--for", "2h").out
        assert limits(kube).spec.freeze
        assert not limits(kube, after=timedelta(hours=3)).spec.freeze
        assert program(kube, "unfreeze").out.endswith("is not frozen: its rebalances go on\n")
        assert FREEZE_OVERRIDE not in annotations(kube, REASSIGNMENT_THROTTLES, "limits")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("suspend", "r", "--for", "2h"), "--for and --reason require --override"),
        (("suspend", "r", "--override", "--for", "31d"), "must be at most 30d"),
        (("suspend", "r", "--override", "--for", "tomorrow"), "is not a duration like 15m"),
        (("suspend", "r", "--override", "--reason", "x" * 201), "at most 200 characters"),
        (("throttle", "r", "--cluster-default", "--override"), "--override requires rates or --unlimited"),
        (("throttle", "r", "--end-override", "--override"), "--override requires rates or --unlimited"),
        (("throttle", "r", "--cluster-wide", "--log-dir-rate", "1Mi"), "has no --log-dir-rate"),
    ],
)
def test_wrong_usage(arguments, says):
    kube = world(body())
    done = program(kube, *arguments)
    assert done.code == 2
    assert says in done.err
    assert kube.writes == []


def test_what_is_written_is_valid():
    """The operator reads each of them without a problem."""
    kube = world(body(), LIMITS)
    for arguments in (
        ("suspend", "r"),
        ("throttle", "r", "--rate", "5Mi"),
        ("throttle", "limits", "--cluster-wide", "--unlimited"),
        ("freeze", "limits"),
    ):
        assert program(kube, *arguments, "--override").code == 0
    assert (desired(kube).override_problems, limits(kube).override_problems) == ((), ())
    assert (len(desired(kube).overrides), len(limits(kube).overrides)) == (2, 2)
    assert parse_rebalance(stored(kube)).spec.throttle is None
