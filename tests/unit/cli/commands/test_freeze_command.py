"""kafka-rebalance freeze and unfreeze."""

import pytest
from tests.unit.cli.commands.resource_runs import body, program, spec_of, world

from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES

KIND = "KafkaReassignmentThrottle"


def throttle(name="limits", **spec):
    return body({"leaderRate": "50Mi", **spec}, kind=KIND, name=name)


def frozen(kube, name="limits"):
    return spec_of(kube, REASSIGNMENT_THROTTLES, name).get("freeze", False)


@pytest.mark.parametrize("name", [("limits",), ()], ids=["named", "the only one"])
def test_there_and_back(name):
    """Twice is no error, and rates are left alone."""
    kube = world(throttle())
    done = program(kube, "freeze", *name)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{KIND} kafka/limits is frozen: no rebalance of its cluster submits a step\n"
    assert frozen(kube)
    assert "is already frozen" in program(kube, "freeze", *name).out
    assert program(kube, "unfreeze", *name).out == f"{KIND} kafka/limits is not frozen: its rebalances go on\n"
    assert not frozen(kube)
    assert "already not frozen" in program(kube, "unfreeze", *name).out
    assert spec_of(kube, REASSIGNMENT_THROTTLES, "limits")["leaderRate"] == "50Mi"
    assert len(kube.writes) == 2


def test_several_have_to_be_named():
    kube = world(throttle("a"), throttle("b"))
    done = program(kube, "freeze")
    assert done.code == 2
    assert "namespace kafka has several: name one of a, b" in done.err
    assert kube.writes == []


def test_the_others_that_still_freeze_are_named():
    """freeze counts from any of them, so the cluster may stay frozen."""
    kube = world(throttle("a", freeze=True), throttle("b", freeze=True))
    done = program(kube, "unfreeze", "a")
    assert done.code == 0
    assert done.err == "still frozen, which counts if it is the same cluster: b\n"


def test_unfreezing_by_name_needs_no_permission_to_list():
    kube = world(throttle("a", freeze=True))
    kube.forbidden_namespaces = {"kafka"}
    done = program(kube, "unfreeze", "a")
    assert (done.code, done.err) == (0, "")
    assert not frozen(kube, "a")


def test_without_any_it_says_what_to_create():
    done = program(world(), "freeze")
    assert done.code == 1
    assert f"namespace kafka has no {KIND}: create one for the cluster" in done.err
