"""kafka-rebalance approve: only the plan that was shown is approved."""

import pytest
from tests.unit.cli.commands.resource_runs import (
    ENDED,
    HASH,
    OTHER,
    RUNNING,
    WAITING,
    body,
    plan,
    program,
    spec_of,
    status,
    world,
)

from kafka_rebalance.errors import Transient

MANUAL = {"approval": {"policy": "Manual", "driftBudget": 5}}


def waiting(**more):
    return body(MANUAL, status(WAITING), **more)


def approve(kube, *options, answer="y\n"):
    return program(kube, "approve", "r", *options, answer=answer)


class TestApproved:
    def test_it_prints_the_plan_and_asks(self):
        """Its moves, its hash and what it does to the brokers; the rest of spec.approval stays."""
        kube = world(waiting())
        done = approve(kube)
        assert done.code == 0, done.err
        lines = [" ".join(line.split()) for line in done.out.splitlines()]
        assert lines[:2] == [
            "Plan 2 partitions, 2 replica moves (proved minimal), 1 preferred leader to change, 2.0 KiB to copy",
            HASH,
        ]
        assert "3 2 0 2.0 KiB 0 B 1 0" in lines
        assert not [line for line in lines if line.startswith("Duration")]
        assert done.out.endswith("Approve it? [y/N]: y\napproved; follow it with: kafka-rebalance watch r -n kafka\n")
        assert spec_of(kube)["approval"] == {"policy": "Manual", "driftBudget": 5, "planHash": HASH}

    def test_it_names_the_brokers_to_empty(self):
        """The hash covers them: they are cordoned, also those that lose no replica."""
        done = approve(world(body({**MANUAL, "brokers": {"decommission": [5, 3]}}, status(WAITING))))
        assert "Decommission brokers 3, 5" in [" ".join(line.split()) for line in done.out.splitlines()]

    def test_it_says_how_long_it_takes(self):
        done = approve(world(body(MANUAL, status(WAITING, plan(eta="40m to 1h20m")))))
        assert "\nDuration   40m to 1h20m, at the current throttle" in done.out

    def test_it_warns_of_what_the_plan_does(self):
        """The condition SpecWarning of the resource."""
        reported = status(WAITING)
        message = "broker 3 ends with 12 replicas instead of 6: it is the last broker of rack b"
        about = {"status": "True", "observedGeneration": 1, "lastTransitionTime": "2026-01-01T12:00:00Z"}
        reported["conditions"].append(
            {"type": "SpecWarning", "reason": "FewBrokersInRack", "message": message, **about}
        )
        assert f"\nwarning: {message}\n" in approve(world(body(MANUAL, reported))).out

    @pytest.mark.parametrize("answer", ["n\n", "", "\n"])
    def test_only_with_a_yes(self, answer):
        kube = world(waiting())
        done = approve(kube, answer=answer)
        assert done.code == 3
        assert done.err.endswith("refused (NotConfirmed): nothing was changed; use --yes to skip this question\n")
        assert kube.writes == []

    def test_a_script_says_yes(self):
        kube = world(waiting())
        assert approve(kube, "--yes", answer="").code == 0
        assert spec_of(kube)["approval"]["planHash"] == HASH

    def test_a_reviewed_plan_by_its_hash(self):
        kube = world(waiting())
        assert approve(kube, "-y", "--plan-hash", HASH).code == 0
        assert spec_of(kube)["approval"]["planHash"] == HASH

    def test_twice_is_no_error(self):
        """Also after an answer that was lost."""
        kube = world(waiting())
        kube.lost_replies = [Transient("ApiServerUnreachable", "no answer")]
        assert approve(kube, "-y").code == 1
        kube.resources["kafkarebalances", "kafka", "r"]["status"]["observedGeneration"] = 2
        done = approve(kube, "-y")
        assert (done.code, done.out) == (0, f"plan {HASH} of kafka/r is already approved\n")

    def test_a_former_approval_is_replaced(self):
        kube = world(body({"approval": {"policy": "Manual", "planHash": OTHER}}, status(WAITING)))
        assert approve(kube, "-y").code == 0
        assert spec_of(kube)["approval"]["planHash"] == HASH


class TestRefused:
    def test_a_plan_that_changed_while_somebody_read_it(self):
        """The operator planned again between the question and the answer."""
        kube = world(waiting())
        kube.rivals = [lambda found: found.update(status=status(WAITING, plan(OTHER)))]
        done = approve(kube)
        assert done.code == 3
        assert f"refused (PlanChanged): the plan of kafka/r is {OTHER} now, not {HASH}: review it with " in done.err
        assert kube.writes == []

    def test_another_plan_than_the_reviewed_one(self):
        kube = world(waiting())
        done = approve(kube, "-y", "--plan-hash", OTHER)
        assert (done.code, done.out) == (3, "")
        assert "kafka-rebalance diff r -n kafka, and approve that one" in done.err

    @pytest.mark.parametrize(
        ("found", "says"),
        [
            (body({}, status(RUNNING)), "NothingToApprove): kafka/r has spec.approval.policy Automatic"),
            (body(MANUAL), "NothingToApprove): kafka/r has no plan for its current spec yet (no operator has"),
            (
                body(MANUAL, status(WAITING), generation=2),
                "NothingToApprove): kafka/r has no plan for its current spec yet (AwaitingApproval: as told): try ag",
            ),
            (body(MANUAL, status(ENDED)), "NothingToApprove): kafka/r has ended (Succeeded: as told)"),
            (waiting(deletionTimestamp="2026-01-01T12:00:00Z"), "Deleting): kafka/r is being deleted"),
        ],
        ids=["automatic", "unseen", "edited", "ended", "deleting"],
    )
    def test_what_cannot_be_approved(self, found, says):
        kube = world(found)
        done = approve(kube, "-y")
        assert done.code == 3
        assert f"refused ({says}" in done.err
        assert kube.writes == []

    def test_one_that_does_not_exist(self):
        done = approve(world())
        assert (done.code, done.err) == (1, "failed (NotFound): KafkaRebalance kafka/r not found\n")
