"""The Kafka version of a cluster: brokers report no number, only the levels of their features (KIP-584)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.bench.kafka_jars import VERSIONS, kafka_jars
from e2e.bench.ports import release_port, reserve_port
from e2e.bench.process import Child
from e2e.bench.waiting import wait_until
from tests.contract.differences import NO_ZOOKEEPER

from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.ports import KafkaAdmin
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.reasons import Reason

pytestmark = pytest.mark.brokers


async def test_the_levels_of_metadata_version(admin: KafkaAdmin, family: str) -> None:
    """A new cluster has finalized the newest level that its brokers support; each release line has its own levels."""
    version = (await admin.describe_cluster()).version
    assert version is not None
    assert (version.line, version.finalized) == (family, version.supported)
    found = version.finding()
    assert (found.recorded, found.reason) == (True, Reason.VERSION_RECORDED)
    assert family in VERSIONS


async def test_without_a_quorum_there_are_no_levels(zookeeper_mode: str) -> None:
    """Before 4.0, a cluster may store its metadata in ZooKeeper."""
    admin = connect(ConnectionSettings(bootstrap_servers=zookeeper_mode))
    try:
        version = (await admin.describe_cluster()).version
    finally:
        await admin.close()
    assert version is not None
    assert (version.supported, version.finalized) == (None, None)
    assert version.finding().reason is Reason.ZOOKEEPER_MODE


@pytest.fixture
def zookeeper_mode(family: str, tmp_path: Path) -> Iterator[str]:
    """One broker and one ZooKeeper server; the address of the broker."""
    if family >= NO_ZOOKEEPER:
        pytest.skip("this release line has no ZooKeeper mode")
    jars, store, port = kafka_jars(family), reserve_port(), reserve_port()
    settings = {
        "zoo.cfg": f"dataDir={tmp_path}/zookeeper\nclientPort={store}\nadmin.enableServer=false\n",
        "broker.properties": f"broker.id=1\nzookeeper.connect=127.0.0.1:{store}\nlog.dirs={tmp_path}/data\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port}\n",
    }
    for name, text in settings.items():
        (tmp_path / name).write_text(text)
    servers = {"org.apache.zookeeper.server.quorum.QuorumPeerMain": "zoo.cfg", "kafka.Kafka": "broker.properties"}
    log = tmp_path / "servers.log"
    children = [Child(jars.java(main, str(tmp_path / file), role="broker"), log=log) for main, file in servers.items()]

    def started() -> bool:
        for child in children:
            child.check_alive()
        return "started (kafka.server.KafkaServer)" in log.read_text()

    try:
        wait_until(f"the broker starts (log: {log})", started)
        yield f"127.0.0.1:{port}"
    finally:
        for child in reversed(children):
            child.kill9()
        release_port(port)
        release_port(store)
