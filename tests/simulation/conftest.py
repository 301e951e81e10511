"""The fixtures of `tests/contract` for the simulated brokers, in virtual time."""

import pytest
import pytest_asyncio
from tests.contract.arranging import EVERYONE, FOLLOWER_RATE, LEADER_RATE, new_heavy_topic, put_to_rest, throttle
from tests.contract.observing import partition
from tests.contract.test_cordon import change, shown, shows, unset
from tests.contract.test_outage import outage_of, return_after
from tests.simulation.stand_in_cluster import StandInCluster
from tests.simulation.virtual_time import VirtualLoop

from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp
from kafka_rebalance.model.kafka_version import RECORDED

RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b"}
_HEAVY = 64
_in_virtual_time = pytest_asyncio.fixture(loop_scope="module")
_once_in_virtual_time = pytest_asyncio.fixture(loop_scope="module", scope="module")


def pytest_asyncio_loop_factories(item):
    """Only the recordings need one: seeds are simulated in processes of their own."""
    return {"virtual": VirtualLoop} if item.path.name.startswith("test_recordings") else None


@pytest.fixture(scope="module", params=RECORDED)
def family(request):
    """The release line whose rules the simulated brokers follow."""
    return request.param


@_once_in_virtual_time
async def cluster(family):
    """Five brokers; the follower rate is set in their files, so that every source of a config occurs."""
    cluster = StandInCluster(RACKS, family, files={FOLLOWER_RATE: "1000000000"})
    yield cluster
    cluster.close()


@pytest.fixture
def admin(cluster):
    return cluster.connect()


@pytest.fixture
def raw(cluster):
    """Without the rule of our adapter."""
    return cluster.connect()


@pytest.fixture
def librdkafka(cluster):
    return cluster.admin()


@_once_in_virtual_time
async def heavy_partitions(cluster):
    return iter(new_heavy_topic(cluster, "heavy", *[[1, 2, 3]] * _HEAVY))


@_in_virtual_time
async def heavy(heavy_partitions, admin):
    """A new partition for each test, on [1, 2, 3]."""
    tp = next(heavy_partitions)
    await admin.elect_preferred([tp])
    await partition(admin, tp, "is led by its first", lambda s: s.leader == 1 and s.isr == {1, 2, 3})
    yield tp
    await put_to_rest(admin, tp)


@_in_virtual_time
async def crawling(admin):
    """Broker 4 fetches throttled replicas so slowly that copies to it stay in flight."""
    await throttle(admin, "1")
    yield
    await throttle(admin, None)


@_in_virtual_time
async def rates_put_back(admin):
    """Removes all rates that a test has set."""
    yield
    deletions = [ConfigChange(name, ConfigOp.DELETE) for name in (LEADER_RATE, FOLLOWER_RATE)]
    assert await admin.alter_broker_configs(dict.fromkeys(EVERYONE, deletions)) == dict.fromkeys(EVERYONE)


@_once_in_virtual_time
async def outage(cluster):
    """3 and 5 are dead."""
    async with outage_of(cluster, cluster.connect()) as outage:
        yield outage


@_once_in_virtual_time
async def returned(cluster, outage):
    """3 and 5 are back and have to catch up."""
    async with return_after(cluster, outage):
        yield outage


@_in_virtual_time
async def cordoned(admin, family):
    """Broker 5."""
    assert await change(admin, ConfigOp.SET, "*") is None
    await shows(admin, shown("*", family))
    yield
    assert await change(admin, ConfigOp.DELETE) is None
    await shows(admin, unset(family))
