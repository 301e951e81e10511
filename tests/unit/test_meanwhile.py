"""What somebody asks for in the middle of a round is looked at whole before anything is done about it."""

from collections.abc import Callable

from tests.unit.kafka_in_memory import KafkaInMemory
from tests.unit.operator_in_memory import OperatorInMemory


class Interrupted(KafkaInMemory):
    """Calls ``meanwhile``, once, while the partitions of a round are read."""

    meanwhile: Callable[[], None] | None = None

    async def describe_partitions(self, topics=None):
        found = await super().describe_partitions(topics)
        if topics is not None and self.meanwhile is not None:
            happens, self.meanwhile = self.meanwhile, None
            happens()
        return found


async def test_a_namespace_is_deleted():
    """Not one replica goes back before it is known that the namespace goes too."""
    kafka = Interrupted((1, 2), t=[[1], [1], [1], [1]])
    operator = OperatorInMemory(kafka)
    operator.apply(execution={"parallelPartitionCount": 1})
    await operator.until_true(lambda: [2] in kafka.lists("t"))
    arrived = [number for number, held in enumerate(kafka.lists("t")) if held == [2]]

    def goes():
        operator.kube.terminating_namespaces.add("kafka")
        operator.delete()

    ordered = len(kafka.altered)
    kafka.meanwhile = goes
    await operator.until_true(lambda: not operator.kube.resources)
    assert kafka.meanwhile is None
    assert not {f"t-{number}" for number in arrived} & {name for name, _ in kafka.altered[ordered:]}
    assert [kafka.lists("t")[number] for number in arrived] == [[2]] * len(arrived)
