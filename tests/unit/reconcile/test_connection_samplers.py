"""KafkaConnections with spec.sampling: which clusters are sampled, and what stops it."""

import asyncio

import pytest
from tests.fakes.shared_clusters import Away, Cluster
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api.v1alpha1 import CONNECTIONS
from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.reconcile import connection_samplers
from kafka_rebalance.reconcile.report.sampling_report import StoredSample

FULL = Transient("LakeUnusable", "the sample was not stored in /lake (No space left on device)")


class Lake:
    """Keeps the cluster ids of samples. ``error``: what a sample ends with; ``gate``: where one waits when closed."""

    def __init__(self):
        self.stored, self.samplers, self.error = [], [], None
        self.waiting, self.gate = 0, asyncio.Event()
        self.gate.set()

    def sampler(self, kafka, wanted, *, namespace, consumer_groups):
        self.samplers.append((kafka, consumer_groups))
        return _Sampler(self, kafka, wanted)


class _Sampler:
    def __init__(self, lake, kafka, wanted):
        self.lake, self.kafka, self.wanted = lake, kafka, wanted

    async def sample(self):
        cluster_id = (await self.kafka.describe_cluster()).cluster_id
        self.lake.waiting += 1
        await self.lake.gate.wait()
        self.lake.waiting -= 1
        if self.lake.error is not None:
            raise self.lake.error
        if not self.wanted():
            return None
        self.lake.stored.append(cluster_id)
        return StoredSample(NOON, 12)


@pytest.fixture
async def lake(world, monkeypatch):
    """The operator has a lake, and intervals are short."""
    monkeypatch.setattr(connection_samplers, "_pause", lambda *_: 0.005)
    lake = Lake()
    await world.supervisor.stop()
    world.begin(lake=lake)
    return lake


def sampled(world, namespace="k", server="kafka", **sampling):
    """A KafkaConnection with spec.sampling."""
    world.connection(namespace, server, see=False)
    world.edit(CONNECTIONS, namespace, "prod", sampling=sampling)


def condition(world, namespace="k"):
    found = world.condition(namespace, "Sampling", "prod", CONNECTIONS)
    return (found["status"], found["reason"], found["message"]) if found else None


def sampling_tasks():
    """Those that have not ended."""
    return [task for task in asyncio.all_tasks() if "_keep_sampling" in repr(task)]


def outcomes(world):
    return {s.labels: s.value for s in world.supervisor.samples() if s.family == "samples_total"}


async def more(world, lake, count=3):
    """Wait for this many further samples."""
    goal = len(lake.stored) + count
    await world.until(lambda: len(lake.stored) >= goal)


async def no_more(world, lake):
    """None is stored while the operator looks at the connections many times."""
    before, looks, settle = len(lake.stored), [], world.supervisor._samplers.settle
    world.supervisor._samplers.settle = lambda connection: (looks.append(connection), settle(connection))
    world.connection("other", "away", "looked-at")
    world.servers["away"] = world.real
    await world.until(lambda: len(looks) > 20)
    assert len(lake.stored) == before


class TestSampling:
    async def test_of_a_cluster_that_is_its_own(self, world, lake):
        """Again and again, with a client of its own, as the status and the metrics say."""
        clients = world.supervisor._engines.clients
        connects, connect = [], clients.connect
        clients.connect = lambda *given: (connects.append(given), connect(*given))[1]
        sampled(world, consumerGroups=False)
        await more(world, lake)
        await world.until(lambda: condition(world) == ("True", "Sampled", "one sample each 1m is stored"))
        assert set(lake.stored) == {"c"}
        assert (len(lake.samplers), lake.samplers[0][1], len(connects)) == (1, False, 2)
        status = world.kube.resources[CONNECTIONS, "k", "prod"]["status"]
        assert status["lastSample"] == {"time": "2026-03-04T12:00:00Z", "rows": 12}
        assert outcomes(world)["c", "stored"] == len(lake.stored)

    async def test_only_where_it_is_asked_for(self, world, lake):
        world.connection()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        await no_more(world, lake)
        assert (condition(world), outcomes(world)) == (None, {})

    async def test_without_a_lake_the_status_says_so(self, world):
        """The connection works all the same."""
        sampled(world)
        await world.until(lambda: condition(world) is not None)
        assert condition(world)[:2] == ("False", "NoLake")
        assert world.state("k", "prod", CONNECTIONS) == "Connected"

    async def test_a_round_does_not_wait_for_a_sample(self, world, lake):
        lake.gate.clear()
        sampled(world)
        await world.until(lambda: lake.waiting)
        world.create("k", kafka={"connectionRef": {"name": "prod", "namespace": "k"}})
        world.see("k")
        await world.until(lambda: world.state("k") == "Succeeded")
        assert lake.stored == []


class TestFailures:
    @pytest.mark.parametrize("error", [FULL, ValueError("a defect")])
    async def test_cost_samples_and_nothing_else(self, world, lake, error):
        """Neither the connection, nor the operator, nor later samples."""
        lake.error = error
        sampled(world)
        await world.until(lambda: condition(world) and condition(world)[0] == "False")
        reason = "LakeUnusable" if error is FULL else "InternalError"
        assert condition(world)[1] == reason
        assert world.state("k", "prod", CONNECTIONS) == "Connected"
        await world.until(lambda: outcomes(world)["c", "failed"] > 3)
        assert FULL.__traceback__ is None, "would keep an engine that ends"
        lake.error = None
        await more(world, lake)
        await world.until(lambda: (condition(world) or ())[:2] == ("True", "Sampled"))
        assert world.supervisor.failed_tasks == ()

    async def test_a_limit_of_the_day_is_said(self, world, lake):
        """The message says when sampling continues: after that, it does."""
        lake.error = Permanent("DailyLimit", "the limit of 320 MiB a day. Sampling continues after midnight UTC")
        sampled(world)
        await world.until(lambda: condition(world) == ("False", "DailyLimit", lake.error.message))
        lake.error = None
        await world.until(lambda: (condition(world) or ())[:2] == ("True", "Sampled"))

    def test_pauses_grow(self):
        """One failure does not delay the next sample; a store that stays away is not asked at each interval."""
        assert [connection_samplers._pause(60, failures) for failures in (0, 1, 2, 3, 4, 99)] == [
            *(60, 60, 120, 240, 300, 300)
        ]
        assert [connection_samplers._pause(3600, failures) for failures in (0, 1, 99)] == [3600] * 3


class TestClaims:
    async def test_brokers_that_answer_as_another_cluster(self, world, lake):
        """They get nothing into the model of the other one, before and after samples were stored."""
        sampled(world)
        await more(world, lake)
        world.real.cluster_id = "another"
        await world.until(lambda: (condition(world) or ())[:2] == ("False", "OtherCluster"))
        await no_more(world, lake)
        assert set(lake.stored) == {"c"}

    async def test_a_server_that_claims_the_cluster_of_another_owner(self, world, lake):
        """Only the owner on record is sampled."""
        sampled(world)
        await more(world, lake)
        world.servers["evil"] = fake = Cluster([1, 2], stolen=[[1, 2]])
        sampled(world, "evil", "evil")
        await world.until(lambda: condition(world, "evil") is not None)
        assert condition(world, "evil")[:2] == ("False", "Conflicted")
        await more(world, lake)
        assert fake not in [kafka._admin for kafka, _ in lake.samplers]

    async def test_an_address_that_leads_to_another_cluster_with_the_id(self, world, lake):
        """What the client for samples reaches is compared with the brokers and topics on record, before each run."""
        clients, first = world.supervisor._engines.clients, [world.real]
        connect, fake = clients.connect, Cluster([7, 8, 9], stolen=[[7, 8, 9]])

        def leading_elsewhere(settings, owner):
            found = connect(settings, owner)
            return found if found is not world.real or (first and first.pop()) else fake

        clients.connect = leading_elsewhere
        sampled(world)
        await world.until(lambda: condition(world) and condition(world)[:2] == ("False", "ClusterIdCollision"))
        assert (world.owner["namespace"], lake.samplers, lake.stored) == ("k", [], [])
        clients.connect = connect
        await more(world, lake)
        assert [kafka._admin for kafka, _ in lake.samplers] == [world.real]


class TestEnd:
    async def test_with_the_connection(self, world, lake):
        """A sample that is being taken then is not stored either."""
        closed, close = [], Cluster.close
        sampled(world)
        await more(world, lake)
        world.real.close = lambda: (closed.append(1), close(world.real))[1]
        lake.gate.clear()
        await world.until(lambda: lake.waiting)
        before = len(lake.stored)
        lake.gate.set()
        world.gone(CONNECTIONS, "k", "prod")
        await world.until(lambda: closed)
        await no_more(world, lake)
        assert len(lake.stored) == before
        assert outcomes(world) == {}

    async def test_does_not_wait_for_the_next_sample(self, world, lake, monkeypatch):
        """The task ends at once, however long the interval is, and with it the connections to the brokers."""
        monkeypatch.setattr(connection_samplers, "_pause", lambda *_: 3600)
        sampled(world)
        await more(world, lake, 1)
        world.edit(CONNECTIONS, "k", "prod", sampling={"interval": "10s"})
        await more(world, lake, 1)
        await world.until(lambda: len(sampling_tasks()) == 1)
        world.gone(CONNECTIONS, "k", "prod")
        await world.until(lambda: sampling_tasks() == [])

    async def test_with_the_field(self, world, lake):
        """The condition goes, too."""
        sampled(world)
        await more(world, lake)
        await world.until(lambda: condition(world))
        world.edit(CONNECTIONS, "k", "prod", sampling=None)
        await world.until(lambda: condition(world) is None)
        await no_more(world, lake)
        assert world.kube.resources[CONNECTIONS, "k", "prod"]["status"]["lastSample"] is None

    async def test_with_servers_that_are_not_known_to_lead_to_the_cluster(self, world, lake):
        """After an edit, sampling goes on when they have answered as this cluster."""
        sampled(world)
        await more(world, lake)
        world.servers["other"] = Away()
        world.edit(CONNECTIONS, "k", "prod", bootstrapServers="other:9092")
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "KafkaUnreachable")
        await world.until(lambda: sampling_tasks() == [])
        world.servers["other"] = world.real
        await more(world, lake)

    async def test_edits_begin_a_new_run(self, world, lake):
        """Of what concerns sampling; permissions of namespaces do not."""
        sampled(world)
        await more(world, lake)
        world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "Same"})
        await more(world, lake)
        assert len(lake.samplers) == 1
        world.edit(CONNECTIONS, "k", "prod", sampling={"interval": "10s"})
        await world.until(lambda: condition(world)[2] == "one sample each 10s is stored")
        await world.until(lambda: len(lake.samplers) == 2)
        await more(world, lake)

    @pytest.mark.parametrize("anew", [False, True], ids=["edited", "created again"])
    async def test_edits_do_not_add_up(self, world, lake, anew):
        """A sample may take minutes, and each run has a client. The next run begins as the last edit says."""
        lake.gate.clear()
        sampled(world, consumerGroups=True)
        await world.until(lambda: lake.waiting == 1)
        looks, settle = [], world.supervisor._samplers.settle
        world.supervisor._samplers.settle = lambda connection: (looks.append(connection), settle(connection))
        for seconds in range(61, 66):
            if anew:
                world.gone(CONNECTIONS, "k", "prod")
            sampled(world, interval=f"{seconds}s", consumerGroups=False)
            before = len(looks)
            await world.until(lambda before=before: len(looks) > before + 2)
        assert (len(sampling_tasks()), len(lake.samplers), lake.stored) == (1, 1, [])
        lake.gate.set()
        await more(world, lake)
        assert [groups for _, groups in lake.samplers] == [True, False]
        assert (len(sampling_tasks()), len(world.supervisor._samplers._running)) == (1, 1)

    async def test_with_the_lead(self, world, lake):
        """An operator that no longer leads takes no sample."""
        sampled(world)
        await more(world, lake)
        await world.supervisor.stop()
        assert sampling_tasks() == []
        assert world.supervisor.failed_tasks == ()
