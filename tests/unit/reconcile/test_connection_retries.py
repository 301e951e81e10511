"""When a connection that has failed is tried again: not for each edit of a resource that names it."""

import asyncio

import pytest
from tests.fakes.shared_clusters import REF, Away

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REBALANCES
from kafka_rebalance.errors import Transient
from kafka_rebalance.model.ownership import Owner
from kafka_rebalance.reconcile import connection_retries
from kafka_rebalance.reconcile.admission import Admission
from kafka_rebalance.reconcile.connection_book import NamedConnection
from kafka_rebalance.reconcile.connection_retries import Tried


class Counted(Away):
    """Counts the attempts to connect."""

    attempts = 0

    async def describe_cluster(self):
        self.attempts += 1
        return await super().describe_cluster()


@pytest.fixture
def away(world, monkeypatch):
    """A server that is gone, and pauses that do not end in a test."""
    monkeypatch.setattr(connection_retries, "FIRST_PAUSE_SECONDS", 3600.0)
    world.servers["away"] = world.servers["elsewhere"] = Counted()
    return world.servers["away"]


async def edited_often(world, namespace):
    for number in range(20):
        world.edit(REBALANCES, namespace, "r", topics={"include": [f"t{number}"]})
        await settled()


async def settled():
    for _ in range(20):
        await asyncio.sleep(0.001)


async def test_edits_in_a_namespace_that_may_not_use_it(world, away):
    """They must not make the operator log in to the brokers of another team again and again."""
    world.connection(server="away", names=["friend"])
    world.create("stranger", kafka=REF)
    world.see()
    await world.until(lambda: world.state("stranger") == "ConnectionNotPermitted")
    await edited_often(world, "stranger")
    assert away.attempts == 1


async def test_edits_of_a_resource_with_an_inline_connection(world, away):
    """Each attempt costs a process. A resource that comes later gets the problem that is known."""
    world.create("a", "away")
    world.see()
    await world.until(lambda: world.state("a") == "KafkaUnreachable")
    await edited_often(world, "a")
    world.create("a", "away", name="later")
    world.see()
    await world.until(lambda: world.state("a", "later") == "KafkaUnreachable")
    assert away.attempts == 1


async def test_an_edit_of_the_kafka_connection(world, away):
    """The reason may be gone with it."""
    world.connection(server="away")
    await settled()
    world.edit(CONNECTIONS, "k", "prod", bootstrapServers="elsewhere:9092")
    await settled()
    assert away.attempts == 2


async def test_a_kafka_connection_that_is_created_again(world, away):
    """As the message of Conflicted tells."""
    world.connection(server="away")
    world.create("a", kafka=REF)
    world.see()
    await settled()
    world.gone(CONNECTIONS, "k", "prod")
    await settled()
    world.connection(server="away")
    await settled()
    assert away.attempts == 2


async def test_the_pause_grows(monkeypatch):
    """And is short again after a success."""
    monkeypatch.setattr(connection_retries, "FIRST_PAUSE_SECONDS", 2.0)
    monkeypatch.setattr(connection_retries, "LONGEST_PAUSE_SECONDS", 7.0)
    retries, settings = connection_retries.ConnectionRetries(), Tried.of(NamedConnection(Owner("a")))
    failed = Transient("KafkaUnreachable", "no broker answered")
    pauses = []
    for outcome in (failed, failed, failed, None, failed):
        retries.note(settings, outcome)
        pauses.append(round(retries.seconds))
    assert pauses == [2, 4, 7, 2, 2]


async def test_a_kept_problem_refers_to_nothing():
    """Its traceback would keep what the attempt used, such as the engine of another owner."""
    retries, settings = connection_retries.ConnectionRetries(), Tried.of(NamedConnection(Owner("a")))
    with pytest.raises(Transient) as failed:
        raise Transient("KafkaUnreachable", "no broker answered")
    retries.note(settings, failed.value)
    kept = retries.early(settings)
    assert kept is not None
    assert kept.__traceback__ is None


async def test_edits_are_looked_at_together(world, monkeypatch):
    """Each look reads the records of all runs: the edits of a stranger must not keep the operator busy with that."""
    go_on, looks, judge = asyncio.Event(), [], Admission.judge

    async def judged(*arguments):
        looks.append(arguments)
        return await judge(*arguments)

    async def rest(_):
        await go_on.wait()

    world.connection(names=["friend"])
    world.create("stranger", kafka=REF)
    world.see()
    await world.until(lambda: world.state("stranger") == "ConnectionNotPermitted")
    monkeypatch.setattr(Admission, "judge", judged)
    monkeypatch.setattr(connection_retries, "sleep", rest)
    await edited_often(world, "stranger")
    assert len(looks) <= 1
    go_on.set()
    await world.until(lambda: len(looks) > 1)


async def test_the_rest_after_a_look(monkeypatch):
    """Four times as long as the look, and at most a second."""
    rests, connection = [], NamedConnection(Owner("a"))
    connection.changed.set()

    async def rest(seconds):
        rests.append(seconds)

    monkeypatch.setattr(connection_retries, "sleep", rest)
    now = asyncio.get_running_loop().time()
    for most, began in ((15, now - 0.1), (15, now - 100), (0.3, now - 100)):
        await connection_retries.ConnectionRetries().wait(connection, most, began)
    assert 0.4 <= rests[0] <= 1.0
    assert rests[1:] == [1.0, 0.3]


async def test_many_connections_named_in_one_namespace(world, monkeypatch):
    """All clusters share the threads that call the API server: only two calls of such a namespace are under way."""
    calls, most, answered = set(), [], asyncio.Event()
    get = world.kube.get

    async def slow(plural, namespace, name):
        calls.add(name)
        most.append(len(calls))
        await answered.wait()
        calls.discard(name)
        return await get(plural, namespace, name)

    for number in range(10):
        world.create("a", name=f"r{number}", kafka={"connectionRef": {"name": f"gone-{number}"}})
    world.see()
    monkeypatch.setattr(world.kube, "get", slow)
    await world.until(lambda: most)
    await settled()
    answered.set()
    await world.until(lambda: all(world.state("a", f"r{number}") == "ConnectionNotFound" for number in range(10)))
    assert max(most) == 2
