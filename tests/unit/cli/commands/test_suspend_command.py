"""kafka-rebalance suspend and resume."""

import pytest
from tests.unit.cli.commands.resource_runs import ENDED, body, program, spec_of, status, world


@pytest.mark.parametrize(
    ("before", "command", "said", "after"),
    [
        ({}, "suspend", "suspended: no new step starts, steps in flight finish", True),
        ({"execution": {"suspend": False}}, "suspend", "suspended: no new step", True),
        ({"execution": {"suspend": True}}, "suspend", "already suspended: ", True),
        ({"execution": {"suspend": True}}, "resume", "not suspended: it goes on", False),
        ({"execution": {"suspend": False}}, "resume", "already not suspended", False),
    ],
)
def test_it_is_set_and_nothing_else(before, command, said, after):
    limits = {"parallelReplicaCount": 2}
    kube = world(body({"execution": {**before.get("execution", {}), **limits}}))
    done = program(kube, command, "r")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"KafkaRebalance kafka/r is {said}")
    assert spec_of(kube)["execution"] == {"suspend": after, **limits}
    assert len(kube.writes) == ("already" not in said)


@pytest.mark.parametrize(
    "command", [("suspend",), ("resume",), ("suspend", "--override"), ("throttle", "--rate", "1Mi")]
)
def test_one_that_has_ended(command):
    """Nothing is in progress that the change could affect; an undo obeys it."""
    kube = world(body(reported=status(ENDED), generation=1))
    done = program(kube, command[0], "r", *command[1:])
    assert done.code == 0
    warning = "warning: KafkaRebalance kafka/r has ended (Succeeded): this applies only to an undo or to a new run\n"
    assert done.err == warning


def test_one_that_was_edited_after_its_end():
    """It gets a new run."""
    kube = world(body(reported=status(ENDED), generation=2))
    assert program(kube, "suspend", "r").err == ""


def test_one_that_was_never_suspended_stays_as_it_is():
    kube = world(body())
    assert program(kube, "resume", "r").code == 0
    assert "execution" not in spec_of(kube)


def test_one_that_does_not_exist():
    done = program(world(), "suspend", "r")
    assert (done.code, done.err) == (1, "failed (NotFound): KafkaRebalance kafka/r not found\n")
