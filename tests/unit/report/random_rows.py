"""Rows of partitions that compress badly: every replica moves, and each has another size."""

import random

from kafka_rebalance.model.topology import TopicPartition, replicas_of
from kafka_rebalance.report.report_contents import PartitionRow


def random_rows(count):
    chosen = random.Random(1)
    return [
        PartitionRow(
            TopicPartition(f"topic-{n // 50}", n % 50),
            replicas_of(*chosen.sample(range(1000), 3)),
            replicas_of(*chosen.sample(range(1000), chosen.choice([2, 3, 4]))),
            chosen.randrange(1 << 40),
        )
        for n in range(count)
    ]
