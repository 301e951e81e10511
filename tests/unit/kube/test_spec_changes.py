"""Changes of a resource by commands: never onto another version than the one that was looked at."""

import pytest
from tests.fakes.kube_in_memory import KubeInMemory

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.kube.api_errors import Conflict, NotFound
from kafka_rebalance.kube.spec_changes import change


@pytest.fixture
def kube():
    kube = KubeInMemory()
    kube.create(REBALANCES, {"metadata": {"namespace": "kafka", "name": "r"}, "spec": {"a": 1}})
    return kube


def to(value, seen=None):
    def decide(body):
        if seen is not None:
            seen.append(body["spec"]["a"])
        return None if body["spec"]["a"] == value else {"spec": {"a": value}}

    return decide


def rival(value):
    return lambda found: found["spec"].update(a=value)


async def test_it_is_written_once(kube):
    assert (await change(kube, REBALANCES, "kafka", "r", to(2)))["spec"] == {"a": 2}
    assert await change(kube, REBALANCES, "kafka", "r", to(2)) is None
    assert len(kube.writes) == 1


async def test_a_change_by_others_is_looked_at_first(kube):
    kube.rivals = [rival(5), rival(6)]
    seen = []
    await change(kube, REBALANCES, "kafka", "r", to(2, seen))
    assert seen == [1, 5, 6]


async def test_and_may_leave_nothing_to_do(kube):
    kube.rivals = [rival(2)]
    assert await change(kube, REBALANCES, "kafka", "r", to(2)) is None
    assert kube.writes == []


async def test_or_be_refused(kube):
    def decide(body):
        if body["spec"]["a"] == 5:
            raise Refused("Changed", "it is 5 now")
        return {"spec": {"a": 2}}

    kube.rivals = [rival(5)]
    with pytest.raises(Refused):
        await change(kube, REBALANCES, "kafka", "r", decide)
    assert kube.writes == []


async def test_it_does_not_try_for_ever(kube):
    kube.rivals = [rival(number) for number in range(3, 100)]
    with pytest.raises(Conflict):
        await change(kube, REBALANCES, "kafka", "r", to(2))


async def test_one_that_does_not_exist(kube):
    with pytest.raises(NotFound, match="KafkaRebalance kafka/s not found"):
        await change(kube, REBALANCES, "kafka", "s", to(2))


async def test_after_a_lost_answer_it_can_be_repeated(kube):
    kube.lost_replies = [Transient("ApiServerUnreachable", "no answer")]
    with pytest.raises(Transient):
        await change(kube, REBALANCES, "kafka", "r", to(2))
    assert await change(kube, REBALANCES, "kafka", "r", to(2)) is None
    assert len(kube.writes) == 1
