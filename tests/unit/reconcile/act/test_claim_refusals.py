"""The message of a refused claim says what an administrator can do."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.shared_clusters import Cluster
from tests.unit.cli.commands.test_history_command import DONE

from kafka_rebalance.cli.options.resource_lookup import stores
from kafka_rebalance.errors import Refused
from kafka_rebalance.kube.binding_store import BindingStore
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.reconcile.act.claim_refusals import ClaimRefusals
from kafka_rebalance.reconcile.act.claimed_server import Claimed
from kafka_rebalance.reconcile.act.cluster_ledgers import ClusterLedgers
from kafka_rebalance.reconcile.act.cluster_work import Work

OPEN = replace(DONE, started_at=datetime(2026, 1, 2, tzinfo=UTC), closed_at=None, outcome=None)
INLINE, CONNECTION = Owner("a"), Owner("k", "prod")


@pytest.fixture
def refusals():
    kube = KubeInMemory()
    return ClaimRefusals(BindingStore(kube), ClusterLedgers(kube, lambda _: False), stores(kube).runs)


@pytest.mark.parametrize(
    ("holder", "claimant", "confirms"),
    [
        (INLINE, Owner("b"), False),
        (INLINE, CONNECTION, True),
        (CONNECTION, INLINE, True),
        (CONNECTION, Owner("l", "prod"), True),
    ],
)
def test_work_of_an_owner_that_nothing_names(refusals, holder, claimant, confirms):
    """An administrator confirms servers for a KafkaConnection, or in place of one that does not exist."""
    cluster = Cluster([1], t=[[1]])
    server = Claimed(cluster.info, cluster, frozenset({"new:9092"}))
    refusal = Refused("Conflicted", "belongs to another owner")
    found = refusals.left_behind(refusal, Binding("c", holder), Work((OPEN,), throttled=False), server, claimant)
    assert (found.reason, "belongs to another owner" in found.message) == ("Conflicted", True)
    assert ("kubectl annotate" in found.message, "runs are open (kafka/r)" in found.message) == (confirms, True)
