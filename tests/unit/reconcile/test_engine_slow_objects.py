"""Objects of one namespace whose writes take their time-out: the rounds of the cluster end, and the others go on."""

from collections import Counter
from datetime import timedelta

from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, REBALANCES, parse_throttle
from kafka_rebalance.errors import Transient
from kafka_rebalance.reconcile.act.turns import STAGE_SECONDS

WRITE_SECONDS = 8
MANY = 40
KAFKA = {"kafka": {"bootstrapServers": "kafka:9092"}}


def slow_writes(operator):
    """From now on, no write to an object of the namespace ``slow`` gets an answer. Returns the writes, by name."""
    kube, sent = operator.kube, Counter()

    def slow(write):
        async def called(plural, namespace, name, *rest):
            if namespace != "slow":
                return await write(plural, namespace, name, *rest)
            sent[name] += 1
            operator.clock.at += timedelta(seconds=WRITE_SECONDS)
            raise Transient("ApiServerUnreachable", "did not answer (ReadTimeoutError)")

        return called

    kube.patch_status, kube.patch_finalizers = slow(kube.patch_status), slow(kube.patch_finalizers)
    return sent


def created(operator, number, plural=REBALANCES, **spec):
    metadata = {"name": f"s{number}", "uid": f"s-{number}", "namespace": "slow", "creationTimestamp": NOON.isoformat()}
    return operator.kube.create(plural, {"metadata": metadata, "spec": KAFKA | spec})


async def a_run():
    kafka = KafkaInMemory((1, 2), t=[[1]] * 4)
    operator = OperatorInMemory(kafka)
    operator.apply(brokers={"decommission": [1]}, throttle={"unlimited": True}, execution={"parallelPartitionCount": 1})
    return kafka, operator


async def seconds_of_a_round(operator):
    before = operator.clock.monotonic()
    await operator.engine.tick()
    return operator.clock.monotonic() - before


async def test_a_round_writes_for_a_limited_time():
    """However many there are, a round does not last as long as all writes. The run of another namespace ends."""
    kafka, operator = await a_run()
    kafka.slow = {2}
    await operator.until_true(lambda: kafka.flying)
    slow_writes(operator)
    for number in range(MANY):
        operator.see(created(operator, number, topics={"include": ["none"]}))
    first = await seconds_of_a_round(operator)
    assert first <= 2 * (STAGE_SECONDS + WRITE_SECONDS)
    for _ in range(30):
        kafka.arrive()
        assert await seconds_of_a_round(operator) <= 3 * (STAGE_SECONDS + WRITE_SECONDS)
        operator.clock.at += timedelta(seconds=1)
    assert operator.state == "Succeeded"


async def test_each_has_its_turn():
    """None of them waits for ever for its first write."""
    _, operator = await a_run()
    await operator.until("Succeeded")
    sent = slow_writes(operator)
    for number in range(MANY):
        operator.see(created(operator, number, topics={"include": ["none"]}))
    for _ in range(MANY):
        await operator.engine.tick()
    assert len(sent) == MANY


async def test_the_pause_grows():
    """An object that cannot be written costs its time-out rarely. When it can be written, that is done soon."""
    _, operator = await a_run()
    await operator.until("Succeeded")
    statuses, finalizers = operator.kube.patch_status, operator.kube.patch_finalizers
    sent = slow_writes(operator)
    operator.see(created(operator, 1, topics={"include": ["none"]}))
    for _ in range(600):
        await operator.engine.tick()
        operator.clock.at += timedelta(seconds=1)
    assert sent["s1"] <= 40
    operator.kube.patch_status, operator.kube.patch_finalizers = statuses, finalizers
    for _ in range(90):
        await operator.engine.tick()
        operator.clock.at += timedelta(seconds=1)
    assert operator.kube.resources[REBALANCES, "slow", "s1"]["status"]["conditions"]


async def test_throttle_resources():
    """The same holds for their statuses."""
    _, operator = await a_run()
    await operator.until("Succeeded")
    sent = slow_writes(operator)
    bodies = [created(operator, number, REASSIGNMENT_THROTTLES, freeze=False) for number in range(MANY)]
    operator.engine.see_throttles({body["metadata"]["uid"]: parse_throttle(body) for body in bodies})
    taken = [await seconds_of_a_round(operator) for _ in range(MANY)]
    assert max(taken) <= 2 * (STAGE_SECONDS + WRITE_SECONDS)
    assert len(sent) == MANY
