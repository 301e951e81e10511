"""Two rebalances that move replicas between log dirs, at the same time or one after the other."""

import threading

import pytest
from tests.unit.reconcile.log_dir_runs import ONE, A, B, C, jbod, only_log_dirs, places
from tests.unit.reconcile.renamed_resources import Renamed

from kafka_rebalance.api.v1alpha1 import LET_GO_ANNOTATION, REBALANCES, UNDO_ANNOTATION
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile import rounds
from kafka_rebalance.reconcile.act import judges


async def test_one_ends_while_the_other_copies():
    """A reading for one says nothing about the other.

    A decommission moves its replicas to brokers 1 and 2. Broker 1 has copies of the other one for a long time.
    """
    kafka = jbod((1, 2, 3), u=[[3]] * 4)
    kafka.crawling = {ONE}
    operator = Renamed(kafka)
    only_log_dirs(operator, topics={"include": ["t"]})
    await operator.until_true(lambda: len(kafka.future) == 4)
    goals = {"logDirs": {"band": "10%"}}
    operator.apply_another(topics={"include": ["u"]}, brokers={"decommission": [3]}, goals=goals)
    for _ in range(40):
        await operator.round()
    status = operator.kube.resources[REBALANCES, "kafka", "new"]["status"]
    assert (operator.state_of("new"), status.get("skipped", [])) == ("Succeeded", [])
    assert (operator.state, len(kafka.future)) == ("Rebalancing", 4)


@pytest.mark.parametrize("then", ["undo", "deletion"])
async def test_copies_in_flight_of_a_run_that_was_let_go(then):
    """The resource that takes over goes on with them. An undo or its deletion restores the log dirs from before."""
    kafka = jbod()
    kafka.crawling = {ONE}
    operator = Renamed(kafka)
    only_log_dirs(operator)
    await operator.until_true(lambda: len(kafka.future) == 4)
    operator.apply_another(strategy="LogDirs", goals={"logDirs": {"band": "10%"}}, takesOver="r")
    operator.delete()
    await operator.round()
    operator.order(LET_GO_ANNOTATION, "true")
    await operator.until_true(lambda: operator.state_of() == "Rebalancing")
    if then == "deletion":
        operator.delete_another()
        await operator.until_true(lambda: not operator.engine.rebalances)
        assert kafka.future == {}
    else:
        kafka.copied()
        await operator.until_true(lambda: operator.state_of() == "Succeeded")
        assert kafka.bytes_in(1) == {A: 200, B: 200, C: 200}
        operator.order_another(UNDO_ANNOTATION, operator.engine.rebalances["u-new"].record.run.plan_hash)
        await operator.until_true(lambda: operator.state_of() == "Undone")
    assert places(kafka) == [A] * 6


@pytest.mark.parametrize(("many", "apart"), [(100, False), (5, True)])
async def test_many_together_are_judged_in_a_thread(monkeypatch, many, apart):
    """Each moves few replicas. With log dirs that have little room, these take long."""
    kafka = jbod((1, 2), u=[[2]] * 6)
    kafka.crawling = {ONE, BrokerId(2)}
    operator, threads = Renamed(kafka), set()
    monkeypatch.setattr(judges, "_MANY_IN_DIRS", many)
    for module in (rounds, judges):

        def judged(rebalance, seen, judge=module.with_log_dirs_judged):
            if rebalance.record.loaded_run is not None and rebalance.record.loaded_run.log_dirs:
                threads.add(threading.current_thread() is threading.main_thread())
            return judge(rebalance, seen)

        monkeypatch.setattr(module, "with_log_dirs_judged", judged)
    only_log_dirs(operator, topics={"include": ["t"]}, brokers={"include": [1]})
    goals = {"logDirs": {"band": "10%"}}
    operator.apply_another(topics={"include": ["u"]}, brokers={"include": [2]}, strategy="LogDirs", goals=goals)
    await operator.until_true(lambda: operator.state == operator.state_of() == "Rebalancing")
    threads.clear()
    for _ in range(5):
        await operator.round()
    assert threads == {not apart}


async def test_one_that_waits_cancels_no_copy_of_the_one_that_goes_first():
    """The copy leads to the log dir that the waiting one has moved the replica out of."""
    kafka = jbod()
    kafka.crawling = {ONE}
    operator = Renamed(kafka)

    def away_from(*paths):
        return {"logDirs": {"band": "1%", "drain": [{"broker": 1, "path": path} for path in paths]}}

    one_by_one = {"maxPerBroker": {"betweenLogDirs": 1}}
    operator.apply(strategy="LogDirs", goals=away_from(A), throttle={"unlimited": True}, execution=one_by_one)
    await operator.until_true(lambda: bool(kafka.future))
    kafka.copied()
    kafka.crawling = {ONE}
    await operator.until_true(lambda: bool(kafka.future))
    operator.apply_another(priority=5, strategy="LogDirs", goals=away_from(B, C), throttle={"unlimited": True})
    await operator.until("Yielding")
    kafka.copied()
    kafka.crawling = {ONE}
    await operator.until_true(lambda: A in kafka.future.values())
    asked = len(kafka.dir_calls)
    for _ in range(10):
        await operator.round()
    assert len(kafka.dir_calls) == asked
    kafka.copied()
    await operator.until_true(lambda: operator.state_of() == "Succeeded")
