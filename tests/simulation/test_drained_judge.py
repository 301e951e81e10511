"""The judge looks at what ``Drained`` claims when it becomes true, for the spec that the status is of.

Of successes too, the late write of an older status may be corrected.
"""

from types import SimpleNamespace

from tests.simulation.status_judge import StatusJudge

from kafka_rebalance.model.topology import TopicPartition


class Reported:
    """Of a rebalance that empties broker 4, later broker 5. The partition is on the brokers given."""

    def __init__(self, *replicas):
        self.broken = []
        kafka = SimpleNamespace(states={TopicPartition("t", 0): SimpleNamespace(replicas=replicas)})
        world = SimpleNamespace(loop=SimpleNamespace(now=100.0), kafka=kafka)
        self.statuses = StatusJudge(world, SimpleNamespace(breach=self.broken.append, foreign={}))
        for generation, broker in ((1, 4), (2, 5)):
            self.statuses.edited(self._body(generation, {}) | {"spec": {"brokers": {"decommission": [broker]}}})

    def says(self, drained, *, generation=1, end="12:00"):
        conditions = [{"type": "Drained", "status": str(drained), "observedGeneration": generation}]
        status = {"conditions": conditions, "observedGeneration": generation, "completedAt": end}
        self.statuses._drained(self._body(2, status))
        return self.broken

    def holds(self, *replicas):
        self.statuses.world.kafka.states[TopicPartition("t", 0)].replicas = replicas

    @staticmethod
    def _body(generation, status):
        return {"metadata": {"name": "a", "uid": "a", "generation": generation}, "status": status}


def test_of_a_broker_with_a_replica():
    assert Reported(4).says(True) == ["a says that [4] are drained, and t-0 is on (4,)"]


def test_of_the_spec_before_an_edit():
    """The edit to broker 5 has not reached the operator yet (seed 1362)."""
    assert Reported(5).says(True) == []
    assert Reported(5).says(True, generation=2) == ["a says that [5] are drained, and t-0 is on (5,)"]


def test_which_stays_after_an_edit():
    """Of the brokers that the spec names now, nothing has been proved (seed 3447)."""
    reported = Reported(5)
    assert reported.says(True) == []
    assert reported.says(True, generation=2, end="12:00") == ["a says that [5] are drained, and t-0 is on (5,)"]


def test_again_after_the_late_write_of_an_older_status():
    """Seed 859: another rebalance had put a replica there meanwhile. The next run has to prove it again."""
    reported = Reported(1)
    reported.says(True)
    reported.says(False, end=None)
    reported.holds(4)
    assert reported.says(True) == []
    reported.says(False, end=None)
    assert reported.says(True, end="12:05") == ["a says that [4] are drained, and t-0 is on (4,)"]


def test_a_success_is_new_once_for_each_run():
    """Seed 371: another rebalance moved a partition between the success and its repetition."""
    reported = Reported(1)
    bodies = [reported._body(1, {"completedAt": end}) for end in ("12:00", "12:00", "12:05")]
    assert [reported.statuses.newly_succeeded(body) for body in bodies] == [True, False, True]
