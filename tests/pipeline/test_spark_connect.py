"""The jobs at a real Spark Connect server, which pyspark contains: the same model as computed here."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest
from e2e.bench.ports import release_port, reserve_port
from tests.pipeline.clusters_by_hand import CLUSTER
from tests.pipeline.dirty_samples import DAY
from tests.pipeline.test_window_job import NOW, numbers, random_samples

from kafka_rebalance.pipeline import job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.campaign]

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """On a free port of this machine, with one thread."""
    port = reserve_port()
    place = tmp_path_factory.mktemp("connect")
    submit = Path(pyspark.__file__).with_name("bin") / "spark-submit"
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    with (place / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [str(submit), "--master", "local[1]", *options, "--class", SERVER, "spark-internal"],
            cwd=place,
            env={**env, "SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=log,
            stderr=log,
        )
    try:
        deadline = time.monotonic() + 240
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, (place / "server.log").read_text()[-3000:]
            assert time.monotonic() < deadline, (place / "server.log").read_text()[-3000:]
            time.sleep(0.5)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(240)
        release_port(port)


def run(server: str, *words: str) -> str:
    """A command in a process of its own: pyspark has one mode in each."""
    program = "from kafka_rebalance.cli.main import main; main()"
    command = [sys.executable, "-c", program, "pipeline", *words, "--remote", server]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    return done.stdout


class TestRemote:
    def test_gives_the_same_model(self, spark: SparkSession, server: str, tmp_path: Path) -> None:
        """From samples, and from windows that the server computed."""
        random_samples(seed=11, topics=20).write(tmp_path)
        job.build(spark, str(tmp_path), CLUSTER, DAY, NOW)
        expected = numbers(tmp_path)
        run(server, "load-model", "--lake", str(tmp_path))
        assert numbers(tmp_path) == expected
        assert "stored the windows of 4 hours" in run(server, "windows", "--lake", str(tmp_path))
        assert "4 hours from stored windows" in run(server, "load-model", "--lake", str(tmp_path))
        assert numbers(tmp_path) == expected
