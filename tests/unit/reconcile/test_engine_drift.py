"""A plan that others have made void is given up at once."""

from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory


async def test_the_round_that_gives_a_plan_up_starts_no_copy_of_it():
    """The partitions that others left alone stay as they are, too. What was copied before is taken back."""
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
