"""How long the operator and Kafka's own tool take for the same plan, on real brokers and a real API server.

python -m benchmarks.kafka_tool [--rounds 2] [--only large small tiny] [--write docs/benchmarks-schedule.md]

Three of six brokers have all replicas, and the plan moves them to the other three. Each round executes the operator's
plan on topics with the same data: by a KafkaRebalance with a KafkaConnection, from ``kubectl apply`` to Succeeded; by
``kafka-reassign-partitions --execute`` with this plan in its file, from the start of Java to the last replica in sync;
and by requests for R replicas of a partition at a time, each sent as soon as the last one is in sync. The third is what
R itself costs: it has no throttle, plan, records or status. Two rounds on small partitions are not counted, because
brokers that have just started are slower. Before each, what was written is brought to the disk, so that none waits for
the data of the one before. Every second round, Kafka's tool is first.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.bench.judge import Key
from e2e.connection import Connection
from e2e.rebalance import Rebalance
from e2e.world import World, targets

from benchmarks.results_page import publish
from benchmarks.throttle_machine import Watched, idle_cores, machine_facts
from benchmarks.throttle_stage import drop, stage
from kafka import KafkaAdminClient, TopicPartition

FULL, EMPTY = (1, 2, 3), (4, 5, 6)
BEGIN, END = "<!-- kafka tool -->", "<!-- end of kafka tool -->"
_REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
_EVERY = 0.05
_WARM_UP_ROUNDS = 2
_LIMIT_SECONDS = 600


@dataclass(frozen=True)
class Case:
    """``megabytes``: of all partitions, before replication. ``rate``: bytes per second and side; None: no throttle.

    ``r``, ``p`` and ``leaders`` are KIP-435's R, P and L.
    """

    partitions: int
    megabytes: int
    rate: int | None
    r: int
    p: int
    leaders: int

    @property
    def throttle(self) -> dict[str, Any]:
        """As in the spec of a KafkaRebalance."""
        return {"unlimited": True} if self.rate is None else {"leaderRate": self.rate, "followerRate": self.rate}

    @property
    def limits(self) -> dict[str, Any]:
        """As in the spec of a KafkaRebalance."""
        limits = {"parallelReplicaCount": self.r, "parallelPartitionCount": self.p}
        return {**limits, "parallelLeaderMovements": self.leaders}


_MIB = 2**20
WARM_UP = Case(300, 30, None, 3, 100, 100)
CASES: Mapping[str, Case] = {
    "throttled": Case(60, 600, 20 * _MIB, 1, 100, 20),
    "large": Case(12, 600, None, 1, 100, 20),
    "large, together": Case(12, 600, None, 3, 100, 20),
    "larger": Case(12, 3_000, None, 1, 100, 20),
    "larger, together": Case(12, 3_000, None, 3, 100, 20),
    "larger, more": Case(60, 3_000, None, 1, 100, 60),
    "large, throttled": Case(12, 1_200, 50 * _MIB, 1, 100, 20),
    "small": Case(300, 300, None, 3, 1000, 1000),
    "tiny": Case(300, 30, 1000 * _MIB, 1, 100, 100),
    "defaults": Case(300, 300, None, 1, 100, 20),
}


def by_operator(
    world: World, case: Case, kafka: Mapping[str, Any]
) -> tuple[float, float, Mapping[Key, Sequence[int]], str]:
    """Seconds, steps per second while it moved, the plan, and the topic."""
    topic = filled(world, case)
    before = {(topic, number): found for number, found in world.partitions(topic).items()}
    execution = {**case.limits, "brokerSettleTime": "1s"}
    began = time.monotonic()
    rebalance = world.rebalance(
        "tool", topic, throttle=case.throttle, kafka=kafka, brokers={"include": list(EMPTY)}, execution=execution
    )
    moving = float("nan")
    deadline = began + _LIMIT_SECONDS
    while (status := rebalance.get().get("status", {})) is not None and not succeeded(status):
        if time.monotonic() > deadline:
            raise RuntimeError(f"not finished: {json.dumps(status)}")
        if moving != moving and status.get("progress", {}).get("startedAt"):
            moving = time.monotonic()
        time.sleep(_EVERY)
    ended = time.monotonic()
    steps = status.get("progress", {}).get("steps", {}).get("completed", 0) or case.partitions * -(-3 // case.r)
    plan = targets(world.planned(rebalance, before))
    world.assert_reached(plan)
    end(rebalance)
    return ended - began, steps / (ended - moving), plan, topic


def by_kafka(world: World, case: Case, plan: Mapping[Key, Sequence[int]]) -> float:
    """Seconds for the same plan; its throttle is removed afterwards with ``--verify``."""
    topic = filled(world, case)
    rows = [{"topic": topic, "partition": at, "replicas": list(to)} for (_, at), to in plan.items()]
    wanted = {row["partition"]: set(row["replicas"]) for row in rows}
    file = world.kafka.directory / f"{topic}.json"
    file.write_text(json.dumps({"version": 1, "partitions": rows}))
    where = ("--bootstrap-server", world.kafka.bootstrap_servers, "--reassignment-json-file", str(file))
    limit = () if case.rate is None else ("--throttle", str(case.rate))
    argv = world.kafka.jars.java(_REASSIGN, *where, "--execute", *limit, role="tool")
    began = time.monotonic()
    with world.reassignments() as listed:
        subprocess.run(argv, check=True, capture_output=True)
        while listed():
            time.sleep(_EVERY)
    while any(found.isr != wanted[number] for number, found in world.partitions(topic).items()):
        time.sleep(_EVERY)
    took = time.monotonic() - began
    world.kafka.run_tool(_REASSIGN, *where, "--verify")
    drop(world, topic)
    return took


def in_steps(world: World, case: Case, plan: Mapping[Key, Sequence[int]]) -> float:
    """Seconds for the same plan in steps of R replicas, P partitions at a time, from the first request."""
    topic = filled(world, case)
    targets_of = {number: tuple(to) for (_, number), to in plan.items()}
    origins = {number: found.replicas for number, found in world.partitions(topic).items()}
    stages = {
        number: [(*to[:done], *origins[number][done:]) for done in (*range(case.r, len(to), case.r), len(to))]
        for number, to in targets_of.items()
    }
    sent = dict[int, tuple[int, ...]]()
    began = time.monotonic()
    client = KafkaAdminClient(bootstrap_servers=world.kafka.bootstrap_servers.split(","))
    with world.reassignments() as listed, contextlib.closing(client):
        while stages or sent:
            flying, found = {number for _, number in listed()}, world.partitions(topic)
            for number, replicas in list(sent.items()):
                if number not in flying and found[number].replicas == replicas and found[number].isr == set(replicas):
                    del sent[number]
            begun = {number for number, left in stages.items() if found[number].replicas != origins[number]}
            free = case.p - len(begun | sent.keys())
            ready = sorted(stages.keys() - sent.keys(), key=lambda number: (number not in begun, number))
            chosen = [number for number in ready if number in begun or (free := free - 1) >= 0]
            calls = {number: stages[number].pop(0) for number in chosen}
            if calls:
                client.alter_partition_reassignments({TopicPartition(topic, n): list(to) for n, to in calls.items()})
            sent |= calls
            stages = {number: left for number, left in stages.items() if left}
            time.sleep(_EVERY)
    took = time.monotonic() - began
    drop(world, topic)
    return took


def filled(world: World, case: Case) -> str:
    """A topic on the brokers that are to be emptied, with its data on the disk."""
    lists = [[FULL[(at + place) % 3] for place in range(3)] for at in range(case.partitions)]
    topic = world.topic("moved", lists, case.megabytes * 1_000_000 // case.partitions)
    os.sync()
    return topic


def succeeded(status: Mapping[str, Any]) -> bool:
    """Whether the condition Succeeded is True."""
    return any(row["type"] == "Succeeded" and row["status"] == "True" for row in status.get("conditions", ()))


def end(rebalance: Rebalance) -> None:
    """Delete the resource, which has ended."""
    rebalance.delete()
    rebalance.wait_gone()


def row_of(
    case: Case,
    ours: Sequence[float],
    steps: Sequence[float],
    theirs: Sequence[float],
    alone: Sequence[float],
    watched: Watched,
) -> str:
    """A line of the table."""
    ratio = statistics.mean(ours) / statistics.mean(theirs)
    rate = "none" if case.rate is None else f"{case.rate // _MIB} MiB/s"

    def each(values: Sequence[float]) -> str:
        return ", ".join(f"{value:.1f}" for value in values)

    cells = (
        f"{case.partitions}, {case.megabytes} MB", rate, f"{case.r}, {case.p}, {case.leaders}", each(ours),
        each(theirs), f"{ratio:.2f}", each(alone) or "-",
        ", ".join(f"{value:.{0 if value >= 10 else 1}f}" for value in steps),
        f"{watched.load:.1f}", f"{watched.others:.1f}",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


HEAD = (
    "| Partitions, data before replication | Rate | R, P, L | Operator, s | Kafka's tool, s | Ratio | "
    "The same steps, s | Steps/s | Load | Cores of others |"
)


def main() -> None:
    """Measure the chosen cases, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--write", type=Path, help="the document whose table is replaced")
    options = parser.parse_args()
    idle = idle_cores()
    lines = [HEAD, "|" + " --- |" * (HEAD.count("|") - 1)]
    with stage((*FULL, *EMPTY)) as world:
        facts = ", ".join(f"{name} {value}" for name, value in machine_facts(world, idle).items())
        print(facts, *lines, sep="\n", flush=True)
        connection = Connection(world)
        connection.wait_state("Connected")
        for _ in range(_WARM_UP_ROUNDS):
            *_, plan, topic = by_operator(world, WARM_UP, connection.ref)
            drop(world, topic)
            by_kafka(world, WARM_UP, plan)
        for name in options.only:
            case = CASES[name]
            ours, steps, theirs, alone = list[float](), list[float](), list[float](), list[float]()
            plan: Mapping[Key, Sequence[int]] = {}
            with Watched() as watched:
                for number in range(options.rounds):
                    if tool_first := number % 2 == 1:
                        theirs.append(by_kafka(world, case, plan))
                    took, rate, plan, topic = by_operator(world, case, connection.ref)
                    drop(world, topic)
                    ours.append(took)
                    steps.append(rate)
                    if not tool_first:
                        theirs.append(by_kafka(world, case, plan))
                    if case.rate is None:
                        alone.append(in_steps(world, case, plan))
            lines.append(row_of(case, ours, steps, theirs, alone, watched))
            print(lines[-1], flush=True)
    if options.write is not None:
        publish("\n".join((f"Measured on: {facts}.", "", *lines)), options.write, BEGIN, END)


if __name__ == "__main__":
    main()
