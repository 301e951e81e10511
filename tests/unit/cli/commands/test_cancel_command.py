"""kafka-rebalance cancel: it says what the deletion does, and deletes only what it has read."""

import pytest
from tests.unit.cli.commands.resource_runs import ENDED, RUNNING, WAITING, body, program, spec_of, status, world

from kafka_rebalance.api.resource_status import ByteProgress, PartitionProgress, ProgressStatus, ReplicaProgress
from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.errors import Transient

PROGRESS = ProgressStatus(
    percent=37,
    partitions=PartitionProgress(total=30, completed=5, in_flight=21, waiting=4),
    replica_moves=ReplicaProgress(total=40, completed=7),
    bytes=ByteProgress(total=2**31, moved=2**30),
)
HELD = ["kafkarebalance.dev/rollback"]


def running(spec=None, **more):
    found = status(RUNNING, progress=PROGRESS, current_batch_size=21)
    return body(spec, found, **{"finalizers": HELD, **more})


def cancel(kube, *options, answer="y\n"):
    return program(kube, "cancel", "r", *options, answer=answer)


def deleted(kube):
    return "deletionTimestamp" in kube.resources[REBALANCES, "kafka", "r"]["metadata"]


class TestDeletes:
    def test_with_the_policy_of_the_resource(self):
        kube = world(running())
        done = cancel(kube)
        assert done.code == 0, done.err
        assert done.out == (
            "KafkaRebalance kafka/r: deletionPolicy Rollback: reassignments in flight are cancelled, and completed "
            "moves are moved back. So far 5 of 30 partitions are at their targets, 21 in flight, 1.0 GiB of 2.0 GiB "
            "copied\nCancel it? [y/N]: y\n"
            "being deleted with deletionPolicy Rollback; follow it with: kafka-rebalance watch r -n kafka\n"
        )
        assert deleted(kube)
        assert "deletionPolicy" not in spec_of(kube)

    def test_one_that_is_suspended_says_what_the_rollback_waits_for(self):
        suspended = {"execution": {"suspend": True}}
        said = "which waits for kafka-rebalance resume, because it is suspended"
        assert said in cancel(world(running(suspended))).out
        assert said not in cancel(world(running(suspended)), "--policy", "Revert").out

    @pytest.mark.parametrize(
        ("policy", "says"), [("Revert", "completed moves stay"), ("Abandon", "nothing is cancelled")]
    )
    def test_with_another_policy(self, policy, says):
        """The policy is written before the deletion: never is the wrong one in force."""
        kube = world(running())
        done = cancel(kube, "--policy", policy)
        assert done.code == 0
        assert says in done.out
        assert spec_of(kube)["deletionPolicy"] == policy
        assert [write[0] for write in kube.writes] == ["patch", "delete"]

    def test_one_that_is_being_deleted_gets_the_other_policy(self):
        kube = world(running(deletionTimestamp="2026-01-01T12:00:00Z"))
        assert cancel(kube, "-y", "--policy", "Revert").code == 0
        assert [write[0] for write in kube.writes] == ["patch"]
        done = cancel(kube, "-y", "--policy", "Revert")
        assert done.out == "KafkaRebalance kafka/r is already being deleted, with deletionPolicy Revert\n"

    @pytest.mark.parametrize(
        ("found", "says"),
        [
            (body({}, status(ENDED)), "it has ended (Succeeded); deleting it moves nothing. To move its partitions ba"),
            (body({}, status(WAITING)), "it has moved nothing so far; deleting it moves nothing"),
            (body(), "it has moved nothing so far"),
        ],
        ids=["ended", "waiting", "unseen"],
    )
    def test_one_that_moves_nothing(self, found, says):
        kube = world(found)
        done = cancel(kube)
        assert done.code == 0
        assert says in done.out
        assert (REBALANCES, "kafka", "r") not in kube.resources


class TestDoesNotDelete:
    def test_without_a_yes(self):
        kube = world(running())
        assert cancel(kube, "--policy", "Abandon", answer="").code == 3
        assert kube.writes == []

    def test_another_one_of_that_name(self):
        """It was deleted and created again while the question was on the screen."""
        kube = world(running())
        kube.rivals = [lambda found: found["metadata"].update(uid="another")]
        done = cancel(kube, "--policy", "Abandon")
        assert done.code == 3
        assert "KafkaRebalance kafka/r is gone, and another one has its name: nothing was changed" in done.err
        assert not deleted(kube)
        assert "deletionPolicy" not in spec_of(kube)

    def test_after_a_lost_answer_it_goes_on_where_it_was(self):
        kube = world(running())
        kube.lost_replies = [Transient("ApiServerUnreachable", "no answer")]
        assert cancel(kube, "-y", "--policy", "Revert").code == 1
        assert not deleted(kube)
        assert cancel(kube, "-y", "--policy", "Revert").code == 0
        assert deleted(kube)
