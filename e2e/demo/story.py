"""Acts 1 and 2: add brokers and fill them; start a decommission, delete it half way, and roll it back."""

import json
import time

from e2e.bench.waiting import wait_until
from e2e.demo.facts import (
    Facts,
    check_leaders,
    check_replicas,
    check_restored,
    check_tidy,
    moved_from,
    moves_between,
    observe,
    show,
    throttle_of,
)
from e2e.demo.prompt import RESOURCE, Prompt
from e2e.demo.screen import Screen
from e2e.demo.stage import NAMESPACE, Stage

FASTER = "100Mi"
FASTER_BYTES = 100 * 2**20
_BATCH_ROWS = 5
_SAMPLES = 3
_SECONDS_BETWEEN_SAMPLES = 3


class Story:
    """Explains what happens on a started stage."""

    def __init__(self, stage: Stage, screen: Screen, prompt: Prompt) -> None:
        self._stage = stage
        self._screen = screen
        self._prompt = prompt

    def measure(self) -> None:
        """Take samples of the live cluster, and compute the load model with Spark."""
        self._screen.section(
            "The pipeline measures the cluster",
            "The sampler writes sizes and offsets of every replica to a lake of Parquet files. A Spark job makes a\n"
            "load model of them: size and bytes in per second of every partition. Plans and ETAs are made from it.",
        )
        self._prompt.sample(_SAMPLES, every=_SECONDS_BETWEEN_SAMPLES)
        self._prompt.model()

    def spread(self) -> Facts:
        """Act 1: spread the topics over all six brokers. Returns the state that Kafka reports afterwards."""
        self._screen.section(
            "Act 1: three new brokers get their share",
            "Brokers 4, 5 and 6 are empty. The resource asks for an even spread with the fewest moves, at 25 MiB/s.\n"
            f"Half way the throttle is raised to {FASTER}B/s: that acts on the copies under way.",
        )
        before = observe(self._stage.kafka)
        show(self._screen, self._stage.kafka, before)
        self._prompt.apply("add-brokers.yaml")
        self._prompt.watch("add-brokers", until=50)
        self._raise_throttle("add-brokers")
        self._prompt.get()
        self._show_batch("add-brokers")
        self._prompt.watch("add-brokers")
        self._prompt.get()
        after = observe(self._stage.kafka)
        show(self._screen, self._stage.kafka, before, after)
        self._judge_spread(before, after)
        return after

    def undo(self, origin: Facts) -> None:
        """Act 2: start to drain broker 6, delete the resource half way; everything is rolled back to `origin`."""
        self._screen.section(
            "Act 2: a change of mind",
            "Broker 6 is being emptied. Half way the resource is deleted: moves in flight are cancelled, moved\n"
            "replicas go back in the same small steps and under the same throttle, and then the resource is gone.",
        )
        self._prompt.apply("decommission.yaml")
        self._prompt.watch("decommission-6", until=50)
        moved = moved_from(origin, self._stage.kafka)
        self._prompt.tell("kubectl", "delete", RESOURCE, "decommission-6", "-n", NAMESPACE, "--wait=false")
        self._screen.say(f"{moved} partitions had moved, or were about to")
        wait_until("the rollback begins", lambda: self._is_going_back("decommission-6"))
        self._prompt.get()
        if self._is_there("decommission-6"):  # otherwise it is already rolled back
            self._prompt.watch("decommission-6")
        self._prompt.get()
        after = observe(self._stage.kafka)
        show(self._screen, self._stage.kafka, origin, after)
        self._screen.check(f"there was something to undo: {moved} partitions had moved", holds=moved > 0)
        check_restored(self._screen, self._stage.kafka, origin)
        check_tidy(self._screen, after)

    def _judge_spread(self, before: Facts, after: Facts) -> None:
        status = self._prompt.check_succeeded("add-brokers")
        plan = status["plan"]
        moves = moves_between(before, after)
        self._screen.say(
            f"Plan: {plan['partitions']} partitions change, {plan['replicaMoves']} replica moves; the lower bound, "
            f"which no balanced plan can be below, is {plan['lowerBound']}. Sizes come from: {plan.get('dataSource')}."
        )
        self._screen.check(
            "the plan was made from Spark's load model",
            holds=plan.get("dataSource") == "LoadModel",
            otherwise=plan.get("dataSource"),
        )
        self._screen.check(
            f"{moves} replicas are on a new broker: as many as the plan said, and not one above the lower bound",
            holds=moves == plan["replicaMoves"] == plan["lowerBound"],
            otherwise=plan,
        )
        check_replicas(self._screen, self._stage.kafka, after)
        check_leaders(self._screen, self._stage.kafka, after)
        check_tidy(self._screen, after)

    def _raise_throttle(self, name: str) -> None:
        patch = json.dumps({"spec": {"throttle": {"leaderRate": FASTER, "followerRate": FASTER}}})
        self._prompt.tell("kubectl", "patch", RESOURCE, name, "-n", NAMESPACE, "--type", "merge", "-p", patch)
        begun = time.monotonic()
        broker = self._stage.kafka.brokers[-1]
        seen = wait_until(
            "the new throttle is in force, or it has all moved",
            lambda: (
                throttle_of(self._stage.kafka, broker) == FASTER_BYTES
                or (self._prompt.resource(name)["status"]["progress"]["percent"] == 100 and "too late")
            ),
        )
        took = f"{time.monotonic() - begun:.1f} s later"
        self._screen.check(
            f"{took}, broker {broker} says follower.replication.throttled.rate={FASTER_BYTES}",
            holds=seen is True,
            otherwise="everything had moved before",
        )

    def _show_batch(self, name: str) -> None:
        status = self._prompt.resource(name)["status"]
        rows = [
            (f"{row['topic']}-{row['partition']}", *(str(row[column]) for column in ("current", "step", "target")))
            for row in status.get("currentBatch", [])[:_BATCH_ROWS]
        ]
        title = f"Current batch, from the resource's status: {status.get('currentBatchSize', 0)} partitions in flight"
        self._screen.table(title, ("partition", "replicas now", "step under way", "target"), rows)

    def _is_going_back(self, name: str) -> bool:
        """Also true if it is already gone."""
        found = self._prompt.found(name)
        return not found or "RollingBack" in found

    def _is_there(self, name: str) -> bool:
        return bool(self._prompt.found(name))
