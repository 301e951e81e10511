"""The format of stored records."""

import gzip
import json
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kafka_rebalance.kube.api_errors import StoredStateCorrupt
from kafka_rebalance.kube.blobs import SHARD_BYTES, cut, object_name
from kafka_rebalance.kube.codec import (
    decode_origins,
    decode_plan,
    decode_run,
    encode_origins,
    encode_plan,
    encode_run,
    pack,
    unpack,
)
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.load_outcome import LoadOutcome, OutsideBroker, OutsideReason, ResourceBalance
from kafka_rebalance.model.plan import (
    Certificate,
    Imbalance,
    LogDirMove,
    Plan,
    PlannedPartition,
    SkippedPartition,
    Spread,
)
from kafka_rebalance.model.rate_room import RateKey, RateRoom
from kafka_rebalance.model.run import Origin, Run, RunOutcome, Spent
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
    return Plan(tuple(sorted(rows)), Certificate(7, optimal=True), rack_violations=1, skipped=skipped)


class TestPlans:
    """A plan survives a round trip, and is always encoded to the same bytes."""

    def test_round_trip(self) -> None:
        before = plan(100, topics=7)
        after = decode_plan(encode_plan(before))
        assert after == before
        assert after.hash == before.hash

    def test_spreads_the_reason_of_an_empty_plan_and_where_sizes_come_from(self) -> None:
        made = replace(plan(3), before=Spread(2, 9), after=Spread(4, 5), reason="GainTooSmall", data_source="LogDirs")
        assert decode_plan(encode_plan(made)) == made

    def test_what_a_budget_left(self) -> None:
        made = replace(plan(3), imbalance=Imbalance(29, 28), uneven_topics=3)
        assert decode_plan(encode_plan(made)) == made

    def test_what_given_lists_found_in_place(self) -> None:
        """Sorted by topic and number; not part of the hash."""
        named = tuple(TopicPartition(topic, number) for topic, number in (("a", 0), ("a", 7), ("b", 1)))
        made = replace(plan(3), in_place=named)
        assert decode_plan(encode_plan(made)) == made
        assert made.hash == plan(3).hash

    def test_the_bound_of_the_bytes(self) -> None:
        """Not part of the hash; a plan of an older operator has none."""
        made = replace(plan(3), certificate=Certificate(7, optimal=True, data_lower_bound=5))
        assert decode_plan(encode_plan(made)) == made
        assert made.hash == plan(3).hash
        older = unpack(encode_plan(made))
        del older["dataLowerBound"]
        assert decode_plan(pack(older)) == plan(3)

    def test_what_load_goals_reached(self) -> None:
        """Not part of the hash, and absent from other plans, so that an older operator reads both."""
        disk = ResourceBalance(LoadResource.DISK, 10, 150.5, 109.0, 1, 0, (10, 10), (15, 5), (11, 9))
        row = OutsideBroker(BrokerId(2), LoadResource.DISK, 12, 11, OutsideReason.RACK_RULE)
        load = LoadOutcome((disk,), 7, 5, (BrokerId(1), BrokerId(2)), (row,))
        made = replace(plan(3), load=load)
        assert decode_plan(encode_plan(made)) == made
        assert made.hash == plan(3).hash
        assert "load" not in unpack(encode_plan(plan(3)))

    def test_what_the_order_has_to_respect(self) -> None:
        """Absent from plans of which any order is within the limits, so that an older operator reads both."""
        free = {RateKey(BrokerId(2), LoadResource.BYTES_IN): 0, RateKey(BrokerId(1), LoadResource.BYTES_OUT): 7}
        rates = {
            TopicPartition("t", 0): {LoadResource.BYTES_IN: 5, LoadResource.BYTES_OUT: 6},
            TopicPartition("u", 1): {LoadResource.BYTES_IN: 4},
        }
        made = replace(plan(3), rate_room=RateRoom(free, rates))
        assert decode_plan(encode_plan(made)) == made
        assert made.hash == plan(3).hash
        assert "rateRoom" not in unpack(encode_plan(plan(3)))

    def test_log_dirs(self) -> None:
        """Part of the hash, and of a format that an operator without them refuses."""
        made, (first, second, third) = plan(3), plan(3).partitions
        moves = (
            LogDirMove(first.tp, BrokerId(1), "/a", "/b", "/a", 7),
            LogDirMove(first.tp, BrokerId(2), None, "/b", None, 7),
            LogDirMove(second.tp, BrokerId(1), "/a", None, "/c", 8),
            LogDirMove(third.tp, BrokerId(1), "/b", "/b", "/a"),
        )
        moved = replace(made, log_dirs=moves)
        assert decode_plan(encode_plan(moved)) == moved
        assert (unpack(encode_plan(made))["format"], unpack(encode_plan(moved))["format"]) == (2, 3)
        assert "logDirs" not in unpack(encode_plan(made))
        another = (replace(moves[0], after="/c"), *moves[1:])
        changed = [replace(moved, log_dirs=found) for found in (another, moves[1:])]
        assert len({found.hash for found in (made, moved, *changed)}) == 4
        assert replace(moved, log_dirs=moves[::-1]).hash == moved.hash

    def test_brokers_to_empty(self) -> None:
        """Absent from other plans, and ignored by an earlier version: docs/install.md promises that it reads both."""
        made = replace(plan(3), decommission=(BrokerId(4), BrokerId(5)))
        assert decode_plan(encode_plan(made)) == made
        assert unpack(encode_plan(made))["format"] == 2
        assert "decommission" not in unpack(encode_plan(plan(3)))

    def test_warnings(self) -> None:
        """Not part of the hash; a plan of an older operator has none."""
        unmatched = ("spec.topics.exclude[0]: '__*' matches no topic",)
        made = replace(plan(3), unmatched=unmatched, crowded=("broker 3 ends with 12 replicas instead of 6",))
        assert decode_plan(encode_plan(made)) == made
        assert made.hash == plan(3).hash
        older = unpack(encode_plan(made))
        del older["unmatched"], older["crowded"]
        assert decode_plan(pack(older)) == plan(3)

    def test_elections(self) -> None:
        """An unchanged list is in the plan for its election, which changes the hash."""
        first, *rest = plan(4).partitions
        elected, left = (replace(first, target=first.current, elects=elects) for elects in (True, False))
        made, without = (replace(plan(4), partitions=(row, *rest)) for row in (elected, left))
        assert (decode_plan(encode_plan(made)), made.elections, made.changed) == (made, 1, 3)
        assert len({made.hash, without.hash, plan(4).hash}) == 3

    def test_deterministic(self) -> None:
        assert encode_plan(plan(100)) == encode_plan(plan(100))

    def test_the_format_is_that_of_the_versions_before(self) -> None:
        """docs/install.md promises upgrades and rollbacks while a rebalance runs: both sides read these numbers."""
        assert unpack(encode_plan(plan(1)))["format"] == 2
        assert unpack(encode_origins([]))["format"] == 2

    def test_hash_of_stored_plans(self) -> None:
        """Stored plans are verified against their hash, whichever version computed it."""
        assert plan(100, topics=7).hash == "sha256:b51975bc5183478d54dd910817999a9dec8897e07cb3fef22ff4724e74fe62a8"

    def test_empty(self) -> None:
        empty = Plan((), Certificate(0, optimal=True))
        assert decode_plan(encode_plan(empty)) == empty


class TestOrigins:
    """Origins are sorted by topic; within one they keep the order in which they were recorded."""

    def test_round_trip(self) -> None:
        origins = [
            Origin(TopicPartition("b", 0), "id-b", replicas_of(1, 2)),
            Origin(TopicPartition("a", 5), "id-a", replicas_of(3)),
            Origin(TopicPartition("b", 0), "id-b-again", replicas_of(2, 1)),
        ]
        assert decode_origins(encode_origins(origins)) == [origins[1], origins[0], origins[2]]

    def test_leaders(self) -> None:
        """The leader is stored, also if there was none or it was not the preferred one."""
        origins = [
            Origin(TopicPartition("a", 0), "id-a", replicas_of(1, 2), BrokerId(2)),
            Origin(TopicPartition("a", 1), "id-a", replicas_of(0, 2), BrokerId(0)),
            Origin(TopicPartition("a", 2), "id-a", replicas_of(1, 2), None),
        ]
        assert decode_origins(encode_origins(origins)) == origins

    def test_first_calls(self) -> None:
        """They are a column of their own, which earlier versions ignore, and which only such records have."""
        origins = [
            Origin(TopicPartition("a", 0), "id-a", replicas_of(1, 2), BrokerId(2), replicas_of(3, 1, 2)),
            Origin(TopicPartition("a", 1), "id-a", replicas_of(0, 2), BrokerId(0)),
            Origin(TopicPartition("b", 0), "id-b", replicas_of(1, 2), None),
        ]
        assert decode_origins(encode_origins(origins)) == origins
        first, second = unpack(encode_origins(origins))["topics"]
        assert first["firstCalls"] == [[3, 0], [3, 1, 2]]
        assert second.keys() == {"topic", "id", "partitions", "replicas", "leaders", "logDirs"}

    def test_log_dirs(self) -> None:
        """The log dirs of moved replicas; None in records of earlier versions, which did not store them."""
        origins = [
            Origin(TopicPartition("a", 0), "id-a", replicas_of(1, 2), log_dirs=((BrokerId(2), "/data/a"),)),
            Origin(TopicPartition("a", 1), "id-a", replicas_of(0, 2)),
            Origin(TopicPartition("a", 2), "id-a", replicas_of(0, 2), log_dirs=None),
        ]
        assert decode_origins(encode_origins(origins)) == origins
        group = {"topic": "a", "id": "i", "partitions": [0], "replicas": [[1], [1]], "leaders": [1]}
        (earlier,) = decode_origins(pack({"format": 2, "topics": [group]}))
        assert earlier.log_dirs is None


class TestSize:
    """Plan and origins of 200,000 partitions take at most 5 MB, however badly they compress."""

    def test_every_partition_moves_anywhere(self) -> None:
        chance = random.Random(1)
        lists = [replicas_of(*chance.sample(range(300), 3)) for _ in range(5_000)]
        rows = [
            PlannedPartition(
                TopicPartition(f"topic-{n // 100:05d}", n % 100),
                chance.choice(lists),
                chance.choice(lists),
                f"{n // 100 * 0x9E3779B97F4A7C15 % 2**64:022x}",
                chance.randrange(10 * 2**30),
            )
            for n in range(200_000)
        ]
        origins = (Origin(p.tp, p.topic_id, p.current, chance.choice(p.current)) for p in rows)
        stored_plan = encode_plan(Plan(tuple(rows), Certificate(0, optimal=False)))
        assert len(stored_plan) + len(encode_origins(origins)) <= 5_000_000


class TestRuns:
    """A run survives a round trip, open or closed."""

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
            undo=True, successor="v", cordoned=replicas_of(4, 7), spent=Spent(3, 300), started_at=moment,
        )  # fmt: skip
        assert decode_run(encode_run(run)) == run
        undone = replace(run, outcome=RunOutcome.UNDONE)
        assert decode_run(encode_run(undone)) == undone

    def test_when_it_started(self) -> None:
        moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
        run = Run("u", "ns", "n", "cluster", "r-1", "sha256:a", "sha256:b", moment)
        assert decode_run(encode_run(run)).started_at is None
        started = replace(run, started_at=moment + timedelta(days=2))
        assert decode_run(encode_run(started)) == started

    def test_written_by_a_later_version(self) -> None:
        """Fields that it added are ignored, so that an operator after a downgrade continues the run."""
        run = Run("u", "ns", "n", "cluster", "r-1", "sha256:a", "sha256:b", datetime(2026, 1, 1, 12, tzinfo=UTC))
        later = json.loads(encode_run(run)) | {"added": {"later": 1}}
        later["spent"] |= {"added": 1}
        assert decode_run(json.dumps(later)) == run

    def test_doubt_of_an_earlier_version(self) -> None:
        """It lasts for later owners of the cluster, also when the run goes on."""
        run = Run("u", "ns", "n", "cluster", "r-1", "sha256:a", "sha256:b", datetime(2026, 1, 1, 12, tzinfo=UTC))
        assert decode_run(encode_run(run)) == run
        doubtful = replace(run, unproved=True, last_success=run)
        assert decode_run(encode_run(doubtful)) == doubtful.to_doubt_later


class TestCorruption:
    """Any other format is corrupt; nothing is guessed."""

    @pytest.mark.parametrize(
        "payload",
        [
            pytest.param(b"", id="nothing"),
            pytest.param(b"junk", id="junk"),
            pytest.param(encode_plan(plan(10))[:-20], id="cut off"),
            pytest.param(gzip.compress(b"[1"), id="no JSON"),
            pytest.param(gzip.compress(b"[" * 100_000), id="nested too deeply"),
            pytest.param(pack([]), id="a list"),
            pytest.param(pack({"format": 99}), id="a format to come"),
            pytest.param(pack({"format": 2}), id="no topics"),
            pytest.param(
                pack({"format": 2, "topics": [{"topic": "a", "id": "i", "partitions": [0, 1]}]}), id="no replicas"
            ),
        ],
    )
    def test_topics(self, payload: bytes) -> None:
        with pytest.raises(StoredStateCorrupt):
            decode_plan(payload)
        with pytest.raises(StoredStateCorrupt):
            decode_origins(payload)

    @pytest.mark.parametrize(
        ("numbers", "replicas", "leaders"),
        [
            ([0, 1], [[2, 2], [1, 2, 3]], [1, 2]),
            ([0, 1], [[2, 1], [1, 2, 3, 4]], [1, 2]),
            ([0, 1], [[2], [1, 2]], [1, 2]),
            ([0], [[2, 2], [1, 2, 3, 4]], [1]),
            ([0, 1], [[2, 2], [1, 2, 3, 4]], [1]),
        ],
        ids=["too few brokers", "too many brokers", "too few lists", "too few numbers", "too few leaders"],
    )
    def test_columns_that_do_not_fit(self, numbers: list[int], replicas: list[list[int]], leaders: list[int]) -> None:
        """A list is never assigned to another partition."""
        group = {"topic": "a", "id": "i", "partitions": numbers, "replicas": replicas, "leaders": leaders}
        with pytest.raises(StoredStateCorrupt):
            decode_origins(pack({"format": 2, "topics": [group]}))

    @pytest.mark.parametrize("text", ["", "{}", '{"format": 1}', '{"format": 1, "opened_at": "x"}', "[" * 100_000])
    def test_run(self, text: str) -> None:
        with pytest.raises(StoredStateCorrupt) as found:
            decode_run(text)
        assert "\n" not in found.value.message


class TestShards:
    """Pieces are below the API server's limit and add up to the payload."""

    @pytest.mark.parametrize("size", [0, 1, SHARD_BYTES, SHARD_BYTES + 1, 3 * SHARD_BYTES])
    def test_cut(self, size: int) -> None:
        payload = bytes(size)
        pieces = cut(payload, SHARD_BYTES)
        assert b"".join(pieces) == payload
        assert all(len(piece) <= SHARD_BYTES for piece in pieces)
        assert len(pieces) == max(1, -(-size // SHARD_BYTES))


class TestNames:
    """Ids that differ only in case get different names; so do keys that are equal only when joined."""

    def test_distinct(self) -> None:
        assert object_name("ledger", "AbC") != object_name("ledger", "aBc")
        assert object_name("plan", "a", "b") != object_name("plan", "ab")
        name = object_name("ledger", "MkU3OEVBNTcwNTJENDM2Qg")
        assert name == name.lower()
