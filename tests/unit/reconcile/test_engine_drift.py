"""A plan is abandoned at once if other tools have made it void."""

from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory


async def test_the_round_that_abandons_a_plan_starts_no_copy_of_it():
    """The remaining partitions are not moved. Completed moves are rolled back."""
    kafka = KafkaInMemory((1, 2, 3), t=[[1]] * 12)
    operator = OperatorInMemory(kafka)
    operator.apply(brokers={"include": [1, 2]}, approval={"driftBudget": 0}, execution={"parallelPartitionCount": 1})
    await operator.until_true(lambda: [2] in kafka.lists("t"))
    for number in (n for n, held in enumerate(kafka.lists("t")) if held == [1] and n % 2):
        kafka.assign("t", number, 3)
    ordered = kafka.altered
    for _ in range(20):
        if operator.state != "Drifted":
            ordered = list(kafka.altered)
            await operator.round()
    assert operator.state == "Drifted"
    assert [to for _, to in kafka.altered[len(ordered) :] if len(to) > 1] == []
