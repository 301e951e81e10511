"""A cluster is claimed by another owner: what was begun with the former one, and at which servers."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.shared_clusters import Cluster
from tests.unit.cli.commands.test_history_command import DONE

from kafka_rebalance.cli.options.resource_lookup import stores
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.kube.binding_store import BindingStore
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.model.run import RunOutcome
from kafka_rebalance.reconcile.act.claimed_server import Claimed
from kafka_rebalance.reconcile.act.cluster_owners import ClusterOwners
from kafka_rebalance.reconcile.act.cluster_work import Work
from kafka_rebalance.reconcile.decide.cluster_ownership import Standing

NOW = datetime(2026, 1, 2, tzinfo=UTC)
K, K2 = Owner("k", "prod"), Owner("k2", "k2")


class Deleting:
    """The engine of the former owner closes the run before the API server answers that the resource is gone."""

    def __init__(self, stored, end):
        self.stored, self.end = stored, end

    async def exists(self, namespace, name, uid):
        await self.end()
        return False


@pytest.mark.parametrize("end", ["handed over", "forgotten"])
async def test_a_run_that_has_ended_is_not_closed_again(end):
    """Its heir would lose what it inherits, or a deleted record would return."""
    kube = KubeInMemory()
    stored = stores(kube)
    run = replace(DONE, started_at=NOW, closed_at=None, outcome=None)
    handed_over = replace(run, closed_at=NOW, outcome=RunOutcome.TAKEN_OVER, successor="heir")
    closed = handed_over if end == "handed over" else None
    await stored.runs.save(run)

    async def ended():
        if closed is None:
            await stored.runs.delete(run.uid)
        else:
            await stored.runs.save(closed)

    owners = ClusterOwners(kube, stored, Deleting(stored, ended), lambda _: None, lambda _: False, lambda: NOW)
    await owners._abandon_orphans(Work((run,), throttled=False))
    assert await stored.runs.load(run.uid) == closed


class Claims:
    """The KafkaConnection k2/k2 has led to the cluster at kafka:9092. Its run is open there, and now it is deleted."""

    def __init__(self):
        self.kube = KubeInMemory()
        self.stores = stores(self.kube)
        self.bindings = BindingStore(self.kube)
        self.cluster = Cluster([1, 2, 3], t=[[1, 2, 3]])
        self.owners = ClusterOwners(self.kube, self.stores, None, lambda _: None, lambda _: False, lambda: NOW)

    async def begin(self):
        topics = dict(await self.cluster.topic_ids())
        servers = frozenset({"kafka:9092"})
        await self.bindings.save(Binding("c", K2, frozenset(self.cluster.info.brokers), topics, servers))
        await self.stores.runs.save(replace(DONE, started_at=NOW, closed_at=None, outcome=None, owner=K2))
        return self

    async def come_to(self, servers, owner=K2):
        """The client of the owner is about to be replaced by one of these servers."""
        await self.owners.recognise(owner, self.cluster.info, self.cluster, servers)

    async def claim(self, owner=K, servers="kafka:9092"):
        server = Claimed(self.cluster.info, self.cluster, frozenset({servers}))
        claimant = Standing(owner, created=NOW)

        def standing(former, _cluster_id):
            return Standing(former, named=False, edited=True)

        async def evict():
            raise AssertionError

        async def claimed():
            return await self.owners.claim(claimant, server, standing, running=False, evict=evict)

        return await server.judged(claimed)

    async def servers(self):
        return set((await self.bindings.load("c")).servers)


@pytest.fixture
async def claims():
    return await Claims().begin()


class TestRecognise:
    """The owner's client comes to a server that nobody has claimed the cluster with."""

    async def test_the_server_is_on_record(self, claims):
        await claims.come_to("Evil:9092")
        assert await claims.servers() == {"evil:9092", "kafka:9092"}

    async def test_another_owner_has_no_proof_without_it(self, claims):
        """The run may have started there."""
        await claims.come_to("evil:9092")
        with pytest.raises(Refused, match="not known that the bootstrap servers of both") as refused:
            await claims.claim()
        assert refused.value.reason == "Conflicted"

    async def test_during_a_claim(self, claims, monkeypatch):
        """The claim is judged again."""
        refuse_more, during = BindingStore.refuse_more, []

        async def slow(store, binding, most):
            if not during:
                during.append(binding.owner)
                await claims.come_to("evil:9092")
            await refuse_more(store, binding, most)

        monkeypatch.setattr(BindingStore, "refuse_more", slow)
        with pytest.raises(Refused, match="not known that the bootstrap servers of both"):
            await claims.claim()
        assert during == [K]
        assert await claims.servers() == {"evil:9092", "kafka:9092"}

    async def test_during_the_claim_of_another_connection_of_the_owner(self, claims, monkeypatch):
        """Both are on record."""
        refuse_more, during = BindingStore.refuse_more, []

        async def slow(store, binding, most):
            if not during:
                during.append(binding.owner)
                await claims.come_to("evil:9092")
            await refuse_more(store, binding, most)

        monkeypatch.setattr(BindingStore, "refuse_more", slow)
        await claims.claim(K2, "new:9092")
        assert await claims.servers() == {"evil:9092", "kafka:9092", "new:9092"}

    async def test_while_brokers_and_topics_are_remembered(self, claims, monkeypatch):
        load, during = BindingStore.load, []

        async def slow(store, cluster_id):
            binding = await load(store, cluster_id)
            if not during:
                during.append(binding.owner)
                await claims.come_to("evil:9092")
            return binding

        claims.cluster.create("other", [[1, 2, 3]])
        monkeypatch.setattr(BindingStore, "load", slow)
        server = Claimed(claims.cluster.info, claims.cluster)

        async def remembered():
            await claims.owners.remember(server)

        await server.judged(remembered)
        binding = await claims.bindings.load("c")
        assert (set(binding.servers), "other" in binding.topics) == ({"evil:9092", "kafka:9092"}, True)

    @pytest.mark.parametrize("servers", ["evil:9092", "kafka:9092"])
    async def test_after_the_claim_of_another_owner(self, claims, servers):
        """The former owner uses no client that it does not have already."""
        await claims.claim()
        with pytest.raises(Refused, match="is not bound to KafkaConnection k2/k2"):
            await claims.come_to(servers)
        assert await claims.servers() == {"kafka:9092"}

    async def test_after_the_end_of_the_record(self, claims):
        """It does not return."""
        await claims.bindings.delete("c")
        with pytest.raises(Refused, match="is not bound to KafkaConnection k2/k2"):
            await claims.come_to("kafka:9092")
        assert await claims.bindings.load("c") is None

    async def test_the_record_cannot_be_written(self, claims, monkeypatch):
        """The server is not used."""

        async def unavailable(_body):
            raise Transient("ApiServerUnavailable", "no answer")

        monkeypatch.setattr(claims.kube, "replace_config_map", lambda _name, body: unavailable(body))
        with pytest.raises(Transient):
            await claims.come_to("evil:9092")

    async def test_a_server_on_record(self, claims, monkeypatch):
        """As after a Secret was rotated: nothing is written."""
        monkeypatch.setattr(claims.kube, "replace_config_map", None)
        await claims.come_to("kafka:9092")

    async def test_a_server_of_another_cluster(self, claims):
        """It is neither used nor put on record."""
        claims.cluster = Cluster([1, 2, 3], bogus=[[1]])
        with pytest.raises(Refused) as refused:
            await claims.come_to("evil:9092")
        assert refused.value.reason == "ClusterIdCollision"
        assert await claims.servers() == {"kafka:9092"}
