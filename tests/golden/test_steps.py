"""KIP-435's steps: the golden lists and calls."""

import json
from pathlib import Path

import pytest

from kafka_rebalance.execution.steps import Alter, Elect, Present, StepRules, all_steps, next_step
from kafka_rebalance.model.topology import replicas_of

CASES = json.loads((Path(__file__).parent / "steps.json").read_text())


def _present(case):
    return Present(replicas_of(*case["current"]), frozenset(case["isr"]), case["current"][0])


def _as_golden(call):
    if isinstance(call, Elect):
        return {"elect": call.leader}
    row = {"alter": list(call.replicas)}
    if call.until_in_sync:
        row["until"] = f"{list(call.until_in_sync)} in the ISR"
    return row


@pytest.mark.parametrize("case", CASES, ids=[case["why"][:60] for case in CASES])
class TestGoldenSteps:
    def test_the_assignments_are_the_golden_ones(self, case):
        """The list of each step, starting with the original."""
        rules = StepRules(case["parallelReplicas"], case["minInsync"])
        found = all_steps(_present(case), replicas_of(*case["target"]), rules)
        assert [case["current"], *(list(step.replicas) for step in found)] == case["steps"]

    def test_the_calls_are_the_golden_ones(self, case):
        """Each request to Kafka, including elections."""
        rules = StepRules(case["parallelReplicas"], case["minInsync"])
        found = all_steps(_present(case), replicas_of(*case["target"]), rules)
        assert [_as_golden(call) for step in found for call in step.calls] == case["calls"]

    def test_forgetting_everything_between_calls_gives_the_same_calls(self, case):
        """Killed after any call and restarted, the engine sends the same next call: the rules need no memory."""
        rules = StepRules(case["parallelReplicas"], case["minInsync"])
        target = replicas_of(*case["target"])
        present, sent = _present(case), []
        while (step := next_step(present, target, rules)) is not None:
            call = step.calls[0]
            sent.append(_as_golden(call))
            present = _carried_out(present, call)
        assert sent == case["calls"]


def _carried_out(present, call):
    """The effect of one call, as recorded: when the leader is dropped, the first in-sync replica becomes the leader."""
    if isinstance(call, Elect):
        return Present(present.replicas, present.isr, call.leader)
    assert isinstance(call, Alter)
    isr = (present.isr | set(call.until_in_sync)) & set(call.replicas)
    leader = present.leader if present.leader in call.replicas else next(b for b in call.replicas if b in isr)
    return Present(call.replicas, isr, leader)
