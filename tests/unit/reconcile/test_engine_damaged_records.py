"""A deletion that does not change Kafka needs no records, so it ends even if they are damaged."""

from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.renamed_resources import SPEC, renamed_half_way

from kafka_rebalance.api.v1alpha1 import LET_GO_ANNOTATION, REBALANCES
from kafka_rebalance.kube.blobs import KIND_LABEL

R, NEW = (REBALANCES, "kafka", "r"), (REBALANCES, "kafka", "new")
ENDS = ("let-go", "Abandon", "timeout", "terminating")
KINDS = ("run", "plan", "origins")


def records(kube, kind):
    return [body for body in kube.config_maps.values() if body["metadata"]["labels"].get(KIND_LABEL) == kind]


async def end(operator, how):
    """The reason for which a deletion does not change Kafka, and the time until then."""
    if how == "let-go":
        operator.order(LET_GO_ANNOTATION, "true")
    elif how == "Abandon":
        operator.edit(deletionPolicy="Abandon")
    elif how == "timeout":
        operator.edit(rollback={"timeout": "1h"})
        operator.clock.at += timedelta(hours=2)
    else:
        operator.kube.terminating_namespaces.add("kafka")
        operator.clock.at += timedelta(minutes=5)
    if how in {"timeout", "terminating"}:
        await operator.round()
        operator.clock.at += timedelta(minutes=2)


@pytest.fixture(params=KINDS)
async def damaged(request):
    """During the run, one kind of its records is damaged. The resource is deleted after a restart."""
    operator = OperatorInMemory(KafkaInMemory((1, 2), t=[[1]] * 8))
    operator.apply(execution={"parallelPartitionCount": 1})
    await operator.until_true(lambda: [2] in operator.kafka.lists("t"))
    found = records(operator.kube, request.param)
    assert found
    for body in found:
        body["data"] = {"run.json": '{"format": 99}', "index.json": "{}"}
    operator.restart()
    operator.delete()
    return operator


async def test_it_waits(damaged):
    """Without the records it cannot move the replicas back."""
    await damaged.until("StoredStateCorrupt", "StoredPlanMissing")
    for _ in range(60):
        await damaged.round()
    assert R in damaged.kube.resources


async def without_origins():
    """During the run, somebody deletes the origins."""
    operator = OperatorInMemory(KafkaInMemory((1, 2), t=[[1]] * 8))
    operator.apply(execution={"parallelPartitionCount": 1})
    await operator.until_true(lambda: [2] in operator.kafka.lists("t"))
    for body in records(operator.kube, "origins"):
        del operator.kube.config_maps[body["metadata"]["name"]]
    return operator


async def test_the_origins_are_gone():
    """After a restart a deletion does not end as if everything were back."""
    operator = await without_origins()
    operator.restart()
    operator.delete()
    assert "the origins of the run of kafka/r are gone" in await operator.until("StoredStateCorrupt")
    for _ in range(60):
        await operator.round()
    assert R in operator.kube.resources
    await end(operator, "let-go")
    await operator.until_true(lambda: R not in operator.kube.resources)


async def test_no_partition_is_moved_without_them():
    """The same process records no more origins: after a restart, these would count as all that the run has moved."""
    operator = await without_origins()
    before = operator.kafka.lists("t")
    await operator.until("StoredStateCorrupt")
    for _ in range(20):
        await operator.round()
    assert [row for row in operator.kafka.lists("t") if row != [1]] == [row for row in before if row != [1]]
    assert not records(operator.kube, "origins")


@pytest.mark.parametrize("how", ENDS)
async def test_it_ends_without_them(damaged, how):
    """The records stay where they are, and nothing is moved any more."""
    await damaged.until("StoredStateCorrupt", "StoredPlanMissing")
    before = damaged.kafka.lists("t")
    await end(damaged, how)
    await damaged.until_true(lambda: R not in damaged.kube.resources)
    assert damaged.kafka.lists("t") == before
    assert "Abandoned" in [reason for reason, _ in damaged.kube.events]
    assert all(records(damaged.kube, kind) for kind in KINDS)


async def test_held_by_another_finalizer(damaged):
    """The operator's finalizer is removed once, and later rounds write nothing."""
    await damaged.until("StoredStateCorrupt", "StoredPlanMissing")
    damaged.kube.resources[R]["metadata"]["finalizers"].append("example.com/holds")
    await end(damaged, "let-go")
    await damaged.until_true(lambda: damaged.kube.resources[R]["metadata"]["finalizers"] == ["example.com/holds"])
    version, events = damaged.kube.resources[R]["metadata"]["resourceVersion"], len(damaged.kube.events)
    for _ in range(10):
        await damaged.round()
    assert damaged.kube.resources[R]["metadata"]["resourceVersion"] == version
    assert len(damaged.kube.events) == events


@pytest.mark.parametrize("how", ["let-go", "Abandon"])
async def test_a_resource_that_has_taken_over(how):
    """It is deleted before it has a plan of its own, and the plan that it took over is gone."""
    operator = await renamed_half_way()
    operator.delete()
    policy = {"deletionPolicy": "Abandon"} if how == "Abandon" else {}
    operator.apply_another(**SPEC, **policy, takesOver="r")
    await operator.until_true(lambda: not operator.exists("r"))
    operator.delete_another()
    for body in records(operator.kube, "plan"):
        del operator.kube.config_maps[body["metadata"]["name"]]
    if how == "let-go":
        operator.kube.resources[NEW]["metadata"].setdefault("annotations", {})[LET_GO_ANNOTATION] = "true"
    operator.restart()
    await operator.until_true(lambda: not operator.exists("new"))


async def test_the_origins_of_a_run_that_was_handed_over_are_gone():
    """The heir makes no plan that would take what it inherits for the state before."""
    operator = await renamed_half_way()
    operator.delete()
    operator.apply_another(**SPEC)
    await operator.until_true(lambda: not operator.exists("r"))
    operator.restart()
    for body in records(operator.kube, "origins"):
        del operator.kube.config_maps[body["metadata"]["name"]]
    before = operator.kafka.lists("t")
    await operator.until_true(lambda: operator.state_of() == "StoredStateCorrupt")
    for _ in range(20):
        await operator.round()
    assert operator.kafka.lists("t") == before
    assert not records(operator.kube, "origins")
