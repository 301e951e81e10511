"""The simulated controller takes and refuses long values as recorded, as `test_recordings.py`."""

import pytest
import pytest_asyncio
from e2e.bench.load import create_topics
from tests.contract import test_long_values
from tests.simulation.stand_in_cluster import StandInCluster

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def own(family):
    """One broker with many topics."""
    cluster = StandInCluster({1: "a"}, family)
    create_topics(cluster, {f"long-{number}": [[1]] for number in range(test_long_values.MANY)})
    yield cluster
    cluster.close()


@pytest.fixture
def admin(own):
    return own.connect()


class TestOneValue(test_long_values.TestOneValue):
    pass


class TestStoredValue(test_long_values.TestStoredValue):
    pass


class TestManyValues(test_long_values.TestManyValues):
    pass
