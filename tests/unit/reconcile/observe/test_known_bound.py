"""What stays known of topics whose reading failed."""

from dataclasses import replace

import pytest

from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.ports import Answers, ClusterInfo
from kafka_rebalance.model.topology import PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.observe import known_bound
from kafka_rebalance.reconcile.observe.known_bound import KnownBound
from kafka_rebalance.reconcile.observe.observer import EVERYTHING_SECONDS, Observer


def topic(name, count=100, replicas=3):
    ids = replicas_of(*range(replicas))
    tps = [TopicPartition(name, number) for number in range(count)]
    return {tp: PartitionState(tp, "id", ids, frozenset(ids), ids[0]) for tp in tps}


STATE = next(iter(topic("t", 1).values()))


def topics_of(partitions):
    return {tp.topic for tp in partitions}


@pytest.fixture(autouse=True)
def _no_allowance(monkeypatch):
    monkeypatch.setattr(known_bound, "_ALWAYS", 0)


class TestKept:
    def test_everything_that_one_reading_had(self):
        """No broker may describe anything for a while: what was known stays known."""
        bound, all_topics = KnownBound(), topic("a") | topic("b") | topic("c")
        assert bound.kept(all_topics, {}, ()) == {}
        for _ in range(3):
            assert bound.kept({}, all_topics, {"a", "b", "c"}) == all_topics
        assert bound.kept(topic("a"), all_topics, {"b", "c"}) == topic("b") | topic("c")

    def test_a_quarter_more_than_the_largest_reading_had(self):
        """The cluster has grown meanwhile. Those whose readings have failed longest are dropped."""
        bound, before = KnownBound(), topic("a", 400)
        bound.kept(before, {}, ())
        assert bound.kept(topic("b"), before, {"a"}) == before
        before = topic("b") | before
        assert topics_of(bound.kept(topic("c", 1), before, {"a", "b"})) == {"b"}

    def test_replicas_count_too(self):
        """A partition with a hundred takes more than ten times the memory."""
        bound, before = KnownBound(), topic("a", replicas=100)
        bound.kept(topic("a"), {}, {"b"})
        assert bound.kept({}, before, {"a"}) == {}

    def test_what_readings_of_some_topics_added_does_not_count(self):
        """Only readings of everything are counted for the limit of kept answers."""
        bound, before = KnownBound(), topic("a", 100)
        bound.kept(before, {}, ())
        grown = topic("a", 100, replicas=100)
        assert bound.kept({}, grown, {"a"}) == {}

    def test_the_reading_of_a_small_cluster_stays_although_it_grows(self, monkeypatch):
        monkeypatch.undo()
        bound = KnownBound()
        bound.kept(topic("a", 1), {}, ())
        assert bound.kept(topic("b", 900), topic("a", 1), {"a"}) == topic("a", 1)


class TestIsExceeded:
    def test_by_what_is_added(self):
        """Until everything is read again. Most changes add little or nothing."""
        bound, before = KnownBound(), topic("a", 100)
        bound.kept(before, {}, ())
        assert not bound.is_exceeded_by(before.values(), before)
        assert not bound.is_exceeded_by(topic("b", 15).values(), before)
        assert bound.is_exceeded_by(topic("c", 1).values(), before)
        bound.kept(before, {}, ())
        assert not bound.is_exceeded_by(topic("c", 1).values(), before)


class Server:
    """Shows one new topic in each reading, and answers an error for all those before.

    If it is asked for topics, it shows other partitions of them each time.
    """

    def __init__(self):
        self.time, self.shown = 0.0, 0

    def monotonic(self):
        return self.time

    async def list_reassignments(self):
        return {}

    async def topic_configs(self, topics, names):
        return Answers()

    async def log_dirs(self, brokers):
        return Answers()

    async def describe_partitions(self, topics=None, listed=None):
        self.shown += 1
        if topics is not None:
            shown = range(100 * self.shown, 100 * self.shown + 100)
            return Answers({(tp := TopicPartition(t, n)): replace(STATE, tp=tp) for t in topics for n in shown})
        failed = Transient("KafkaUnreachable", "no answer")
        return Answers(topic(f"t{self.shown}"), {f"t{number}": failed for number in range(1, self.shown)})


async def test_a_server_with_other_topics_in_each_reading_does_not_fill_the_memory():
    """Its longest answer is what counts for the limit of kept answers."""
    server = Server()
    observer = Observer(server, server)
    for _ in range(20):
        server.time += EVERYTHING_SECONDS
        await observer.everything()
    assert topics_of(observer.known()) == {"t20"}


async def test_what_one_reading_adds_beyond_that_is_not_known(monkeypatch):
    """Readings of everything fail from then on, so nothing would drop it. What was asked for is as it was read."""
    server = Server()
    observer, tp = Observer(server, server), TopicPartition("t1", 0)
    await observer.everything()
    shown = {tp: replace(STATE, tp=tp, isr=frozenset([1]))} | topic("t1", 5000)
    shown[tp] = replace(shown[tp], leader=2)

    async def fails(topics=None, listed=None):
        if topics is None:
            raise Transient("KafkaUnreachable", "no answer")
        return Answers(shown)

    before = len(observer.known())
    monkeypatch.setattr(server, "describe_partitions", fails)
    await observer.look({tp}, {tp}, ClusterInfo("c", {}))
    assert observer.known()[tp].leader == 2
    assert len(observer.known()) <= before


async def test_nor_does_one_that_shows_other_partitions_of_a_topic_each_time():
    """A topic that moves is read in each round."""
    server = Server()
    observer, tp = Observer(server, server), TopicPartition("t1", 0)
    most = 0
    for _ in range(20):
        await observer.look({tp}, {tp}, ClusterInfo("c", {}))
        most = max(most, len(observer.known()))
    assert most <= 300


async def test_the_lists_of_known_partitions_do_not_grow_without_end(monkeypatch):
    """A round reads the topics of some partitions once more before it sends calls for them."""
    server = Server()
    observer, longer = Observer(server, server), topic("t1", 100, replicas=100)
    await observer.everything()
    look = await observer.look((), (), ClusterInfo("c", {}))

    async def shows(topics=None, listed=None):
        return Answers(longer if topics else topic("t1"))

    monkeypatch.setattr(server, "describe_partitions", shows)
    with pytest.raises(Transient, match="all are read again"):
        await observer.look_again(look, longer)
    assert observer.known() == topic("t1")
    assert await observer.everything() == topic("t1")
    await observer.look_again(look, list(longer)[:1])
    assert observer.known() != topic("t1")
