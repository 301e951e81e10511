"""Kafka's reassignment file: what is read, what is refused, and how it is printed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.reassignment_file import (
    Reassigned,
    parse_reassignment,
    read_reassignment,
    render_assignment,
    render_reassignment,
)
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of

ROW: dict[str, Any] = {"topic": "t", "partition": 0, "replicas": [2, 1]}
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def file(*rows: dict[str, Any], **top: Any) -> bytes:
    return json.dumps({"version": 1, "partitions": list(rows), **top}).encode()


class TestReading:
    def test_what_kafka_and_plan_write(self) -> None:
        """Of log_dirs, only whether one is named; plan's summary, and a file without a version."""
        rows = read_reassignment(file(ROW | {"partition": 1, "log_dirs": ["any", "/d"]}, ROW, summary={}))
        assert rows == (Reassigned(T0, replicas_of(2, 1)), Reassigned(T1, replicas_of(2, 1), names_log_dir=True))
        assert not read_reassignment(file(ROW | {"log_dirs": ["any", "any"]}))[0].names_log_dir
        assert parse_reassignment(json.dumps({"partitions": [ROW]}).encode()) == {T0: (2, 1)}

    def test_original_replicas(self) -> None:
        """KIP-236's field is read and written."""
        read = read_reassignment(file(ROW | {"original_replicas": [1, 3]}))
        assert read == (Reassigned(T0, replicas_of(2, 1), replicas_of(1, 3)),)
        assert read_reassignment(render_reassignment(read).encode()) == read

    @pytest.mark.parametrize(
        ("data", "error", "says"),
        [
            (file(version=2), ValueError, r"version: 2 is not 1"),
            (file(topics=[]), ValueError, r"\$: unknown key 'topics'"),
            (b"{}", ValueError, r"\$: 'partitions' is missing"),
            (file(ROW, ROW | {"partition": "1"}), ValueError, r"partitions\[1\].partition of topic t: expected an int"),
            (
                file(ROW | {"replicas": []}),
                ValueError,
                r"partitions\[0\].replicas of topic-partition t-0: expected at le",
            ),
            (
                file(ROW | {"original_replicas": 3}),
                ValueError,
                r"original_replicas of topic-partition t-0: expected a l",
            ),
            (file(ROW, ROW), Refused, r"partitions\[1\]: topic-partition t-0 is listed twice"),
            (file(ROW | {"replicas": [1, 1]}), Refused, r"partitions\[0\].replicas .* names a broker twice"),
        ],
    )
    def test_refused_with_the_place(self, data: bytes, error: type[Exception], says: str) -> None:
        with pytest.raises(error, match=says):
            read_reassignment(data)


class TestPrinting:
    def test_as_kafkas_tool_prints_it(self) -> None:
        """Sorted, without spaces, with the known log directories."""
        text = render_assignment([(T1, replicas_of(3)), (T0, replicas_of(1, 2))], {(T0, BrokerId(2)): "/d"})
        assert text == (
            '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any","/d"]},'
            '{"topic":"t","partition":1,"replicas":[3],"log_dirs":["any"]}]}'
        )
