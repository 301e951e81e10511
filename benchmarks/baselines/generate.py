"""What Kafka's ``kafka-reassign-partitions.sh --generate`` computes, with the placer class from Kafka's jars."""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from e2e.bench.kafka_jars import kafka_jars

from benchmarks.clusters import Cluster
from benchmarks.planning_judge import worth

SOURCE = Path(__file__).with_name("Generate.java")
RUNS = 5
TOPIC = 64
"""Partitions per topic: Kafka places topic by topic."""


def measured(given: Cluster) -> dict[str, Any]:
    """Figures without the JVM start; the first run is not counted because the JIT compiles during it."""
    brokers = np.flatnonzero(given.targets)
    sizes = [len(part) for part in np.split(given.rf, range(TOPIC, len(given.rf), TOPIC))]
    header = [len(brokers), *np.stack([brokers, given.racks[brokers]], axis=1).ravel().tolist(), len(sizes)]
    topics = [number for size in sizes for number in (size, int(given.rf[0]))]
    jars = ":".join(str(jar) for jar in sorted(kafka_jars().libs.glob("*.jar")))
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        np.array(header + topics, dtype=">i4").tofile(work / "in")
        subprocess.run(["javac", "-d", name, "-cp", jars, str(SOURCE)], check=True)
        options = ["-XX:+UseSerialGC", "-Dlog4j2.disable.jmx=true"]
        command = ["java", *options, "-cp", f"{name}:{jars}", "Generate", str(work / "in"), str(work / "out")]
        before = os.times()
        done = subprocess.run([*command, str(RUNS + 1)], check=True, capture_output=True, text=True)
        after = os.times()
        placed = np.fromfile(work / "out", dtype=">i4").astype(np.int64)
    *nanoseconds, peak = (int(line) for line in done.stdout.split())
    return {
        "seconds": [value / 1e9 for value in nanoseconds[1:]],
        "cpuSeconds": [(after.children_user - before.children_user) / len(nanoseconds)],
        "peakMB": peak / 1000 * 1.024,
        **worth(given, given.lists, placed),
    }
