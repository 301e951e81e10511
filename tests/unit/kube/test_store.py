"""Origins are recorded a few at a time: bounded writes, one record for any version, nothing lost."""

import asyncio
import gzip
import json
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.kube import codec
from kafka_rebalance.kube.api_errors import Conflict
from kafka_rebalance.kube.blobs import BlobStore
from kafka_rebalance.kube.codec import encode_origins
from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of


class Killed(Exception):
    """The operator died between two writes."""


class MortalKube(KubeInMemory):
    """A store whose process is killed after a number of writes; ``largest``: the most text in one ConfigMap."""

    def __init__(self):
        super().__init__()
        self.left = 10**9
        self.largest = 0

    def _put(self, name, body):
        self._spend()
        self.largest = max(self.largest, len(json.dumps(body)))
        return super()._put(name, body)

    async def delete_config_map(self, name, resource_version=None):
        self._spend()
        return await super().delete_config_map(name, resource_version)

    def _spend(self):
        if not self.left:
            raise Killed
        self.left -= 1


def origins(count, start=0):
    """Lists that compress badly, so that few of them fill a piece."""
    return [
        Origin(TopicPartition(f"t{n % 7}", n), f"id-{n % 7}", replicas_of(*((n * k) % 9973 for k in range(1, 40))))
        for n in range(start, start + count)
    ]


def by_partition(rows):
    return {row.tp: row for row in rows}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr("kafka_rebalance.kube.store.PIECE_BYTES", 4096)


class TestPlans:
    @pytest.mark.parametrize("decommission", [(), (BrokerId(1), BrokerId(5))])
    async def test_an_earlier_version_can_verify_them(self, decommission):
        """It computes the hash of the moves and compares it with the attribute. The run has the key."""
        kube, move = KubeInMemory(), PlannedPartition(TopicPartition("t", 0), replicas_of(1), replicas_of(2))
        plan = Plan((move,), Certificate(1, optimal=True), decommission=decommission)
        ref = await PlanStore(kube).save("u", plan.hash, "c", plan, NOON)
        assert (await BlobStore(kube, "plan").attributes(ref))["planHash"] == replace(plan, decommission=()).hash
        stored = await PlanStore(kube).load("u", plan.hash)
        assert (stored.plan, stored.plan.hash) == (plan, plan.hash)


class TestAppending:
    async def test_no_write_grows_with_what_is_stored(self):
        """200,000 partitions are recorded in thousands of batches."""
        kube, rows = MortalKube(), origins(600)
        store = OriginStore(kube)
        for start in range(0, len(rows), 10):
            await store.append("u", "r", rows[start : start + 10])
        assert len(kube.config_maps) > 5
        assert kube.largest < 4 * 4096
        assert await OriginStore(kube).load("u", "r") == by_partition(rows)

    async def test_a_batch_of_any_size(self):
        """A take-over records all at once."""
        kube, rows = MortalKube(), origins(600)
        assert await OriginStore(kube).append("u", "r", rows) == by_partition(rows)
        assert kube.largest < 4 * 4096
        assert await OriginStore(kube).load("u", "r") == by_partition(rows)

    async def test_it_reads_as_one_document(self):
        """An earlier version joins the shards, unpacks them and reads one JSON document."""
        kube, rows = MortalKube(), origins(300)
        store = OriginStore(kube)
        for start in range(0, len(rows), 50):
            await store.append("u", "r", rows[start : start + 50])
            blob = await BlobStore(kube, "origins").read(next(n for n in kube.config_maps if n.count("-") == 1))
            read = json.loads(gzip.decompress(blob.payload))
            assert read["format"] == 2
            assert sum(len(group["partitions"]) for group in read["topics"]) == start + 50

    async def test_an_earlier_version_does_not_take_the_shards_for_garbage(self):
        """It compares the label of each shard with that of its index."""
        kube = MortalKube()
        store = OriginStore(kube)
        await store.append("u", "r", origins(300))
        await store.append("u", "r", origins(300, 300))
        labels = {found["metadata"]["labels"]["kafkarebalance.dev/content"] for found in kube.config_maps.values()}
        assert len(labels) == 1
        assert await store.clean() == 0

    @pytest.mark.parametrize("count", [3, 300])
    async def test_what_an_earlier_version_stored(self, count):
        """One payload, cut anywhere: it is read, and added to."""
        kube, rows, more = MortalKube(), origins(count), origins(5, count)
        blobs = BlobStore(kube, "origins")
        await blobs.write(blobs.name("u", "r"), "u", encode_origins(rows), {"runId": "r"})
        store = OriginStore(kube)
        assert await store.load("u", "r") == by_partition(rows)
        assert await store.append("u", "r", more) == by_partition([*rows, *more])
        assert await OriginStore(kube).load("u", "r") == by_partition([*rows, *more])

    async def test_killed_at_any_write(self):
        """All of a batch is recorded or nothing, what was recorded stays, and nothing is left behind for good."""
        rows, more, last = origins(90), origins(90, 90), origins(1, 500)
        for writes in range(100):
            kube = MortalKube()
            await OriginStore(kube).append("u", "r", rows)
            kube.left = writes
            try:
                await OriginStore(kube).append("u", "r", more)
            except Killed:
                assert await OriginStore(kube).load("u", "r") in (by_partition(rows), by_partition([*rows, *more]))
            else:
                assert writes > 3
                break
            kube.left = 10**9
            await OriginStore(kube).append("u", "r", [*more, *last])
            assert await OriginStore(kube).load("u", "r") == by_partition([*rows, *more, *last])
            index = await BlobStore(kube, "origins").read(next(n for n in kube.config_maps if n.count("-") == 1))
            assert len(kube.config_maps) == 1 + len(index.shards)

    async def test_the_first_of_two_in_one_call_wins(self):
        """As that of two calls does."""
        kube, (mine,) = MortalKube(), origins(1)
        later = Origin(mine.tp, mine.topic_id, replicas_of(1, 2), BrokerId(1))
        assert await OriginStore(kube).append("u", "r", [mine, later]) == by_partition([mine])
        assert await OriginStore(kube).load("u", "r") == by_partition([mine])

    async def test_a_first_call_that_may_not_have_been_sent(self):
        """The next record of that partition wins, also if the first is in a piece that is not written again."""
        kube, rows = MortalKube(), origins(300)
        waiting = [replace(row, first_call=replicas_of(9)) for row in rows]
        store = OriginStore(kube)
        await store.append("u", "r", waiting)
        assert await store.append("u", "r", rows[:20]) == by_partition([*waiting, *rows[:20]])
        assert await store.append("u", "r", waiting) == by_partition([*waiting, *rows[:20]])
        assert await OriginStore(kube).load("u", "r") == by_partition([*waiting, *rows[:20]])

    async def test_log_dirs_are_added(self):
        """The first log dir of each broker stays, and so do the other fields of the record."""
        kube, (row,) = MortalKube(), origins(1)
        store, waiting = OriginStore(kube), replace(row, first_call=row.replicas)
        await store.append("u", "r", [waiting])
        first = ((BrokerId(1), "/data/a"),)
        await store.append("u", "r", [replace(waiting, log_dirs=first)])
        assert await store.append("u", "r", [row]) == by_partition([replace(row, log_dirs=first)])
        later = ((BrokerId(1), "/data/b"), (BrokerId(2), "/data/c"))
        expected = by_partition([replace(row, log_dirs=(*first, later[1]))])
        assert await store.append("u", "r", [replace(waiting, log_dirs=later)]) == expected
        assert await OriginStore(kube).load("u", "r") == expected

    async def test_log_dirs_after_an_earlier_version(self):
        """The requests of that version are not known, so no log dirs are recorded."""
        kube, (row,) = MortalKube(), origins(1)
        older = replace(row, log_dirs=None)
        await OriginStore(kube).append("u", "r", [older])
        added = replace(row, log_dirs=((BrokerId(1), "/data/a"),))
        assert await OriginStore(kube).append("u", "r", [added]) == by_partition([older])

    @pytest.mark.parametrize("sealed", [True, False])
    @pytest.mark.parametrize("instead", [None, "changed only its leader"])
    async def test_given_up(self, monkeypatch, sealed, instead):
        """It is struck off at once, also if it is in a piece that is not written again."""
        if sealed:
            monkeypatch.setattr("kafka_rebalance.kube.store.PIECE_BYTES", 100)
        kube, (kept, refused, later) = MortalKube(), origins(3)
        refused = replace(refused, first_call=replicas_of(9))
        left = instead and replace(refused, first_call=refused.replicas)
        store = OriginStore(kube)
        await store.append("u", "r", [kept, refused])
        await store.give_up("u", "r", {refused: left})
        expected = by_partition([kept, left] if left else [kept])
        assert await OriginStore(kube).load("u", "r") == expected
        assert await store.append("u", "r", [later]) == expected | by_partition([later])
        assert await OriginStore(kube).load("u", "r") == expected | by_partition([later])

    @pytest.mark.parametrize("writes", [0, 1])
    async def test_given_up_though_the_write_fails(self, writes):
        """It does not count any more, and is written with the next record."""
        kube, (refused, later, *kept) = MortalKube(), origins(60)
        refused = replace(refused, first_call=replicas_of(9))
        store = OriginStore(kube)
        await store.append("u", "r", [*kept, refused])
        kube.left = writes
        with pytest.raises(Killed):
            await store.give_up("u", "r", {refused: None})
        kube.left = 10**9
        assert await store.load("u", "r") == by_partition(kept)
        assert await store.append("u", "r", []) == by_partition(kept)
        assert await store.append("u", "r", [later]) == by_partition([*kept, later])
        assert await OriginStore(kube).load("u", "r") == by_partition([*kept, later])

    async def test_what_another_has_recorded_is_not_given_up(self):
        kube, (mine, refused) = MortalKube(), origins(2)
        refused, theirs = replace(refused, first_call=replicas_of(9)), refused
        store = OriginStore(kube)
        await store.append("u", "r", [mine, refused])
        await OriginStore(kube).append("u", "r", [theirs])
        with pytest.raises(Conflict):
            await store.give_up("u", "r", {refused: None})
        assert await store.append("u", "r", []) == by_partition([mine, theirs])

    @pytest.mark.parametrize("carried_out", [False, True])
    async def test_given_up_further_before_it_is_written(self, monkeypatch, carried_out):
        """What was to count instead is given up too. The first write was refused, or carried out without an answer."""
        kube, (kept, refused) = MortalKube(), origins(2)
        left, least = replace(refused, first_call=replicas_of(9)), replace(refused, first_call=refused.replicas)
        store, put = OriginStore(kube), kube.replace_config_map
        await store.append("u", "r", [kept, refused])

        async def unanswered(name, body):
            if carried_out:
                await put(name, body)
            raise Killed

        with monkeypatch.context() as patched:
            patched.setattr(kube, "replace_config_map", unanswered)
            with pytest.raises(Killed):
                await store.give_up("u", "r", {refused: left})
        kube.left = 0
        with pytest.raises(Killed):
            await store.give_up("u", "r", {left: least})
        kube.left = 10**9
        await store.give_up("u", "r", {})
        assert await store.load("u", "r") == by_partition([kept, least])
        assert await OriginStore(kube).load("u", "r") == by_partition([kept, least])

    async def test_nothing_is_written_if_nothing_is_given_up(self):
        kube, rows = MortalKube(), origins(2)
        store = OriginStore(kube)
        await store.append("u", "r", rows)
        kube.left = 0
        await store.give_up("u", "r", {})

    async def test_given_up_of_a_record_that_is_gone(self):
        """Nothing is written: the record would seem to be complete."""
        kube, (refused,) = MortalKube(), origins(1)
        await OriginStore(kube).give_up("u", "r", {refused: None})
        assert not kube.config_maps

    async def test_many_given_up_again_and_again(self, monkeypatch):
        """A server may refuse all orders in each round: what is stored of them must not grow."""
        monkeypatch.setattr("kafka_rebalance.kube.store.PIECE_BYTES", 1000)
        kube, rows = MortalKube(), origins(300)
        kept, refused = rows[:50], [replace(row, first_call=replicas_of(9)) for row in rows[50:]]
        store = OriginStore(kube)
        await store.append("u", "r", kept)
        counts = set()
        for _ in range(5):
            assert await store.append("u", "r", refused) == by_partition([*kept, *refused])
            assert await OriginStore(kube).load("u", "r") == by_partition([*kept, *refused])
            counts.add(len(kube.config_maps))
            await store.give_up("u", "r", dict.fromkeys(refused))
            assert await OriginStore(kube).load("u", "r") == by_partition(kept)
        assert max(counts) <= min(counts) + 2
        assert await store.append("u", "r", rows[50:60]) == by_partition(rows[:60])
        assert await OriginStore(kube).load("u", "r") == by_partition(rows[:60])

    async def test_after_another_writer(self):
        """The first record wins: the next attempt reads what the other one has recorded."""
        kube, (mine, theirs) = MortalKube(), origins(2)
        store = OriginStore(kube)
        await store.append("u", "r", [mine])
        await OriginStore(kube).append("u", "r", [theirs])
        anew = Origin(theirs.tp, theirs.topic_id, replicas_of(1, 2), BrokerId(1))
        with pytest.raises(Conflict):
            await store.append("u", "r", [anew])
        assert await store.append("u", "r", [anew]) == by_partition([mine, theirs])

    async def test_what_was_not_written_is_noticed(self):
        """The origins are read back before a partition is altered."""
        kube, (mine,) = MortalKube(), origins(1)
        get = kube.get_config_map

        async def another(name):
            found = await get(name)
            return found and {**found, "data": {}}

        kube.get_config_map = another
        with pytest.raises(Conflict):
            await OriginStore(kube).append("u", "r", [mine])


class TestReplacing:
    async def test_the_others_are_gone(self):
        """Later moves of others are theirs: the origin is no longer the run's, and may be recorded again."""
        kube, rows = MortalKube(), origins(300)
        store = OriginStore(kube)
        await store.append("u", "r", rows)
        assert await store.replace("u", "r", rows[:2]) == by_partition(rows[:2])
        assert await OriginStore(kube).load("u", "r") == by_partition(rows[:2])
        assert len(kube.config_maps) == 1
        anew = Origin(rows[5].tp, rows[5].topic_id, replicas_of(1, 2), BrokerId(1))
        assert (await store.append("u", "r", [anew]))[anew.tp] == anew


class TestManyRuns:
    async def test_are_read_like_few(self, monkeypatch):
        """Off the event loop. One that cannot be read is left out, and written again all the same."""
        monkeypatch.setattr("kafka_rebalance.kube.store._MANY_RUNS", 0)
        kube = KubeInMemory()
        store = RunStore(kube)
        runs = [Run(f"u-{n}", "a", f"r-{n}", "c", "run", "", "", NOON + timedelta(seconds=n)) for n in (2, 0, 1)]
        for run in runs:
            await store.save(run)
        damaged = next(body for body in kube.config_maps.values() if '"u-2"' in body["data"]["run.json"])
        damaged["data"]["run.json"] = "{}"
        threads = []
        decode = codec.decode_run
        monkeypatch.setattr(
            codec, "decode_run", lambda text: threads.append(threading.current_thread()) or decode(text)
        )
        assert await RunStore(kube).list_all() == [runs[1], runs[2]]
        assert threading.main_thread() not in threads
        await store.save(runs[0])
        assert await store.list_all() == [runs[1], runs[2], runs[0]]

    async def test_many_who_ask_share_a_list(self, monkeypatch):
        """Thousands of resources that may not use their connection, or name one that does not exist, each need it."""
        kube, lists = KubeInMemory(), []
        read = kube.list_config_maps

        async def counted(labels):
            lists.append(labels)
            await asyncio.sleep(0)
            return await read(labels)

        monkeypatch.setattr(kube, "list_config_maps", counted)
        store = RunStore(kube)
        assert await asyncio.gather(*(store.list_all() for _ in range(100))) == [[]] * 100
        assert len(lists) <= 2
