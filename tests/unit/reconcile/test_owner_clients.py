"""Where the settings of a connection are computed."""

import threading

import pytest
from tests.fakes.der import certificate
from tests.fakes.shared_clusters import REF, Away

from kafka_rebalance.api.v1alpha1 import CONNECTIONS
from kafka_rebalance.reconcile.observe import pem_blocks

CAS = {"tls": {"caSecretRef": {"name": "ca"}}}


@pytest.mark.parametrize("inline", [True, False])
async def test_many_cas_are_checked_in_turns_of_inline_connections(world, monkeypatch, inline):
    """A namespace may have any number of these, each of which checks its CAs again and again."""
    threads, check = set(), pem_blocks.certificates

    def recorded(text):
        threads.add(threading.current_thread().name.rpartition("_")[0])
        return check(text)

    monkeypatch.setattr(pem_blocks, "certificates", recorded)
    world.kube.secrets["k", "ca"] = {"ca.crt": certificate("CA").encode() * 100}
    world.servers["away"] = Away()
    if inline:
        world.create("k", kafka={"bootstrapServers": "away:1", **CAS})
    else:
        world.connection(server="away", see=False)
        world.edit(CONNECTIONS, "k", "prod", **CAS)
        world.create("k", kafka=REF)
    world.see("k")
    await world.until(lambda: world.state("k") == "KafkaUnreachable")
    assert len(threads) == 1
    assert (threads == {"inline-round"}) is inline
