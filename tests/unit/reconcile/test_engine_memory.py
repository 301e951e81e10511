"""An engine that ends frees its memory: what a large run needs is never searched for reference cycles."""

import asyncio
import gc
import weakref

from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory


def test_at_once_and_without_the_garbage_collector():
    """A KafkaConnection that is edited gets another engine; those before would stay in memory for ever."""
    operator = OperatorInMemory(KafkaInMemory([1, 2, 3], t=[[1, 2]] * 4))
    operator.assign(*(("t", number, [3, 2]) for number in range(4)))
    asyncio.run(operator.until("Rebalancing"))
    gc.collect()
    engine = weakref.ref(operator.engine)
    gc.disable()
    try:
        operator.restart()
        assert engine() is None
    finally:
        gc.enable()
