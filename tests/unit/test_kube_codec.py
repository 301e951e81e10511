"""What stored records look like."""

import gzip
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kafka_rebalance.kube.blobs import SHARD_BYTES, cut, object_name
from kafka_rebalance.kube.codec import (
    decode_origins,
    decode_plan,
    decode_run,
    encode_origins,
    encode_plan,
    encode_run,
    pack,
)
from kafka_rebalance.kube.errors import StoredStateCorrupt
from kafka_rebalance.model.plan import Plan, PlannedPartition, SkippedPartition
from kafka_rebalance.model.run import Origin, Run, RunOutcome
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of


def plan(partitions: int, topics: int = 1) -> Plan:
    rows = (
        PlannedPartition(
            TopicPartition(f"topic-{n % topics:05d}", n // topics),
            replicas_of(n % 50, (n + 7) % 50, (n + 23) % 50),
            replicas_of(50 + n % 17, n % 50, (n + 7) % 50),
            f"id-{n % topics:018d}",
            n * 1048576,
        )
        for n in range(partitions)
    )
    skipped = (SkippedPartition(TopicPartition("lost", 3), "NoLeader"),)
    return Plan(tuple(sorted(rows)), lower_bound=7, optimal=True, rack_violations=1, skipped=skipped)


class TestPlans:
    """A plan comes back as it was, from the same bytes each time."""

    def test_round_trip(self) -> None:
        before = plan(100, topics=7)
        after = decode_plan(encode_plan(before))
        assert after == before
        assert after.hash == before.hash

    def test_deterministic(self) -> None:
        assert encode_plan(plan(100)) == encode_plan(plan(100))

    def test_two_hundred_thousand_partitions(self) -> None:
        """They fit into a handful of ConfigMaps."""
        before = plan(200_000, topics=2000)
        payload = encode_plan(before)
        assert len(cut(payload, SHARD_BYTES)) <= 5
        assert decode_plan(payload) == before

    def test_empty(self) -> None:
        empty = Plan((), 0, optimal=True)
        assert decode_plan(encode_plan(empty)) == empty


class TestOrigins:
    """Origins keep the order in which they were recorded."""

    def test_round_trip(self) -> None:
        origins = [
            Origin(TopicPartition("b", 0), "id-b", replicas_of(1, 2)),
            Origin(TopicPartition("a", 5), "id-a", replicas_of(3)),
            Origin(TopicPartition("b", 0), "id-b-again", replicas_of(2, 1)),
        ]
        assert list(decode_origins(encode_origins(origins))) == origins

    def test_leaders(self) -> None:
        """Who led comes back, also where nobody did and where it was not the preferred one."""
        origins = [
            Origin(TopicPartition("a", 0), "id-a", replicas_of(1, 2), BrokerId(2)),
            Origin(TopicPartition("a", 1), "id-a", replicas_of(0, 2), BrokerId(0)),
            Origin(TopicPartition("a", 2), "id-a", replicas_of(1, 2), None),
        ]
        assert list(decode_origins(encode_origins(origins))) == origins

    def test_recorded_without_leaders(self) -> None:
        """Rows written before leaders were recorded are of partitions whose leader is not known."""
        old = pack({"format": 1, "topics": [{"topic": "a", "id": "id-a", "partitions": [[0, [1, 2]], [3, [2]]]}]})
        assert list(decode_origins(old)) == [
            Origin(TopicPartition("a", 0), "id-a", replicas_of(1, 2), None),
            Origin(TopicPartition("a", 3), "id-a", replicas_of(2), None),
        ]


class TestRuns:
    """A run comes back as it was, open or closed."""

    @pytest.mark.parametrize("outcome", [None, RunOutcome.ROLLED_BACK_PARTIALLY])
    def test_round_trip(self, outcome: RunOutcome | None) -> None:
        moment = datetime(2026, 1, 1, 12, 0, 0, 5, tzinfo=UTC)
        run = Run(
            "u", "ns", "n", "cluster", "r-1", "sha256:a", "sha256:b", moment, moment if outcome else None, outcome
        )
        assert decode_run(encode_run(run)) == run

    def test_undone_cordoned_and_taken_over(self) -> None:
        moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
        run = Run(
            "u", "ns", "n", "cluster", "r-1", "sha256:a", "sha256:b", moment, moment, RunOutcome.TAKEN_OVER,
            undo=True, successor="v", cordoned=replicas_of(4, 7),
        )  # fmt: skip
        assert decode_run(encode_run(run)) == run
        undone = replace(run, outcome=RunOutcome.UNDONE)
        assert decode_run(encode_run(undone)) == undone

    def test_written_before_undo_and_takeover(self) -> None:
        """What an earlier version wrote lacks the newer fields: it neither undid nor cordoned anything."""
        moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
        old = {
            "format": 1,
            "uid": "u",
            "namespace": "ns",
            "name": "n",
            "cluster_id": "cluster",
            "run_id": "r-1",
            "planning_hash": "sha256:a",
            "plan_hash": "sha256:b",
            "opened_at": moment.isoformat(),
            "closed_at": None,
            "outcome": None,
        }
        run = decode_run(json.dumps(old))
        assert run == Run("u", "ns", "n", "cluster", "r-1", "sha256:a", "sha256:b", moment)
        assert (run.undo, run.successor, run.cordoned) == (False, None, ())


class TestCorruption:
    """What is not ours is said to be corrupt, never guessed at."""

    @pytest.mark.parametrize(
        "payload",
        [b"", b"junk", encode_plan(plan(10))[:-20], gzip.compress(b"[1"), pack([]), pack({"format": 99})],
    )
    def test_plan(self, payload: bytes) -> None:
        with pytest.raises(StoredStateCorrupt):
            decode_plan(payload)

    @pytest.mark.parametrize("text", ["", "{}", '{"format": 1}', '{"format": 1, "opened_at": "x"}'])
    def test_run(self, text: str) -> None:
        with pytest.raises(StoredStateCorrupt):
            decode_run(text)


class TestShards:
    """Pieces are below the API server's limit and add up."""

    @pytest.mark.parametrize("size", [0, 1, SHARD_BYTES, SHARD_BYTES + 1, 3 * SHARD_BYTES])
    def test_cut(self, size: int) -> None:
        payload = bytes(size)
        pieces = cut(payload, SHARD_BYTES)
        assert b"".join(pieces) == payload
        assert all(len(piece) <= SHARD_BYTES for piece in pieces)
        assert len(pieces) == max(1, -(-size // SHARD_BYTES))


class TestNames:
    """Ids that differ only in case are different; so are keys that only look alike when joined."""

    def test_distinct(self) -> None:
        assert object_name("ledger", "AbC") != object_name("ledger", "aBc")
        assert object_name("plan", "a", "b") != object_name("plan", "ab")
        name = object_name("ledger", "MkU3OEVBNTcwNTJENDM2Qg")
        assert name == name.lower()
