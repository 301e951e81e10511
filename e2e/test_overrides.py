"""Overrides stay in force although a controller applies the spec from Git every second."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.bench.waiting import wait_until
from e2e.rebalance import GROUP_VERSION, Rebalance, condition
from e2e.world import BIG, CRAWL, FAST, World

pytestmark = [pytest.mark.brokers, pytest.mark.campaign]

COMMAND = str(Path(sys.executable).with_name("kafka-rebalance"))


class Controller:
    """Applies the manifest of a rebalance every second, like a GitOps controller, which reverts changes."""

    def __init__(self, world: World, rebalance: Rebalance) -> None:
        metadata = {"name": rebalance.name, "namespace": rebalance.namespace}
        head = {"apiVersion": GROUP_VERSION, "kind": "KafkaRebalance", "metadata": metadata}
        self._manifest = json.dumps({**head, "spec": rebalance.spec})
        self._kube = world.kube
        self.syncs = 0

    @contextlib.contextmanager
    def every_second(self) -> Iterator[None]:
        ended = threading.Event()

        def loop() -> None:
            while not ended.is_set():
                self._kube.kubectl(
                    "apply",
                    "--server-side",
                    "--force-conflicts",
                    "--field-manager=git",
                    "-f",
                    "-",
                    stdin=self._manifest,
                )
                self.syncs += 1
                ended.wait(1)

        thread = threading.Thread(target=loop)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def wait_for_syncs(self, count: int) -> None:
        """As many more."""
        goal = self.syncs + count
        wait_until(f"{count} syncs", lambda: self.syncs >= goal)


def command(world: World, verb: str, rebalance: Rebalance, *options: str) -> None:
    arguments = [COMMAND, verb, rebalance.name, "-n", rebalance.namespace, *options]
    env = {**os.environ, "KUBECONFIG": str(world.kube.admin_kubeconfig)}
    done = subprocess.run(arguments, check=False, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr


def test_a_spec_that_is_applied_every_second(world: World) -> None:
    """A change of the spec is reverted at once. An override is in force, is shown, and ends by time or by a command."""
    topic = world.skewed("override", *[BIG] * 6)
    one = {"parallelPartitionCount": 1}
    rebalance = world.rebalance("override", topic, throttle=CRAWL, suspend=False, execution=one)
    rebalance.until("a copy in flight", lambda status: status.get("currentBatchSize"))
    controller = Controller(world, rebalance)
    with controller.every_second():
        rebalance.patch(suspend=True)
        wait_until("Git wins over a patch", lambda: not rebalance.get()["spec"].get("suspend"))

        command(world, "suspend", rebalance, "--override", "--for", "1h", "--reason", "disks of broker 4")
        command(world, "throttle", rebalance, "--rate", "500Mi", "--override", "--for", "1h")
        rebalance.wait_state("Suspended")
        status = rebalance.until("nothing in flight", lambda status: not status.get("currentBatchSize"))
        assert [row["setting"] for row in status["overrides"]] == ["spec.suspend", "spec.throttle"]
        assert status["overrides"][0]["reason"] == "disks of broker 4"
        assert condition(status, "Overridden") == "True"
        done = status["progress"]["partitions"]["completed"]
        controller.wait_for_syncs(3)
        status = rebalance.wait_state("Suspended")
        assert status["progress"]["partitions"]["completed"] == done

        command(world, "suspend", rebalance, "--override", "--for", "3s")
        rebalance.until("it goes on by itself", lambda status: len(status["overrides"]) == 1)
        rebalance.wait_for("Succeeded")  # at CRAWL, it would take minutes
        controller.wait_for_syncs(1)
        command(world, "throttle", rebalance, "--end-override")
        rebalance.until("no override", lambda status: condition(status, "Overridden") == "")
    assert rebalance.get()["spec"]["throttle"] == CRAWL
    assert FAST["leaderRate"] not in json.dumps(rebalance.get()["spec"])
    world.assert_tidy()
