from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.pipeline.spark_session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests: starting it costs more than all its work."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_DRIVER_MEMORY", "1g")  # however large the machine is
        with spark_session("local[2]") as session:
            yield session
