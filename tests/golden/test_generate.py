"""Kafka's placement from scratch, compared with the results of Kafka's own class.

``generate.json`` was recorded by calling ``StripedReplicaPlacer`` of Kafka 4.3.1, which is what
``kafka-reassign-partitions.sh --generate`` uses, with a ``java.util.Random`` whose ``nextInt(bound)`` is the remainder
of the CRC-32 of the topic name divided by the bound.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka_rebalance.model.goals import RackAwareness, Strategy
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.planning import Goals, PartitionInput, PlanRequest, plan
from kafka_rebalance.planning.strategies.generate import drawn_for, striped

CASES = json.loads((Path(__file__).parent / "generate.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=[case["topic"] for case in CASES])
class TestRecorded:
    def test_rule(self, case: dict[str, Any]) -> None:
        """Every list of the topic, in Kafka's order."""
        racks = {BrokerId(b): rack for b, rack in case["brokers"]}
        found = striped(racks, case["replicationFactor"], len(case["lists"]), drawn_for(case["topic"]))
        assert found == [replicas_of(*row) for row in case["lists"]]

    def test_plan(self, case: dict[str, Any]) -> None:
        """The plan reaches it from any state, with any partition ids, and has no certificate."""
        some = replicas_of(*(b for b, _ in case["brokers"][: case["replicationFactor"]]))
        names = [TopicPartition(case["topic"], 3 * i) for i in range(len(case["lists"]))]
        request = PlanRequest(
            tuple(Broker(BrokerId(b), rack) for b, rack in case["brokers"]),
            tuple(PartitionInput(tp, some) for tp in reversed(names)),
            frozenset(BrokerId(b) for b, _ in case["brokers"]),
            Goals(RackAwareness.ENFORCED),
            Strategy.GENERATE,
        )
        made = plan(request)
        after = {p.tp: p.target for p in made.partitions}
        assert [after.get(tp, some) for tp in names] == [replicas_of(*row) for row in case["lists"]]
        assert made.certificate.optimal == (made.replica_moves == 0)


def test_replication_factors_may_differ_within_a_topic() -> None:
    """Lists are computed for the largest factor; the others are prefixes. Kafka's class has one factor per topic."""
    racks = {BrokerId(b): f"r{b}" for b in range(3)}
    rows = [replicas_of(0, 1, 2)[: 3 if i == 4 else 1] for i in range(9)]
    request = PlanRequest(
        tuple(Broker(b, rack) for b, rack in racks.items()),
        tuple(PartitionInput(TopicPartition("t", i), row) for i, row in enumerate(rows)),
        frozenset(racks),
        strategy=Strategy.GENERATE,
    )
    after = {p.tp.partition: p.target for p in plan(request).partitions}
    whole = striped(racks, 3, 9, drawn_for("t"))
    assert [after.get(i, row) for i, row in enumerate(rows)] == [
        row[: len(old)] for row, old in zip(whole, rows, strict=True)
    ]
