"""The jars of a pinned Kafka version, and how to run one of its classes.

`KAFKA_VERSION` selects the release line: 4.3 (default), 4.2, 4.1, 4.0 or 3.9, with or without the patch number of its
pom.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from e2e.bench.cache import cached
from e2e.bench.ports import release_port, reserve_port
from e2e.bench.process import Child
from e2e.bench.waiting import wait_until

_POMS = Path(__file__).parents[1] / "kafka"
VERSIONS = {"4.3": "4.3.1", "4.2": "4.2.1", "4.1": "4.1.1", "4.0": "4.0.1", "3.9": "3.9.1"}
"""The pinned releases by their release lines."""
# Tests run many short-lived brokers: small heaps, C1 only, one collector thread, no counters for jstat, which cost 20
# wake-ups per second. With 256 MB and several hundred partitions, filling topics is mostly garbage collection.
_JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Djava.awt.headless=true")


@dataclass(frozen=True)
class KafkaJars:
    """One Kafka version on disk."""

    version: str
    libs: Path
    jvm: tuple[str, ...] = ()

    def java(self, main: str, *arguments: str, role: str, beside: Path | None = None) -> list[str]:
        """The command line for class `main`; `role` is "broker" or "tool" and selects the log configuration.

        `beside` is an additional jar.
        """
        logging = (
            f"-Dlog4j.configuration=file:{_POMS}/log4j-{role}.properties"
            if self.version.startswith("3.")
            else f"-Dlog4j2.configurationFile={_POMS}/log4j2-{role}.properties"
        )
        # Explicit and sorted: a class archive is only valid for the identical class path.
        class_path = ":".join(str(jar) for jar in (*sorted(self.libs.glob("*.jar")), *([beside] if beside else ())))
        return ["java", *_JVM, *self.jvm, logging, "-cp", class_path, main, *arguments]


def kafka_jars(version: str | None = None) -> KafkaJars:
    """The jars of `version` (default: `KAFKA_VERSION`, else 4.3); downloads them if they are not cached."""
    asked = version or os.environ.get("KAFKA_VERSION") or "4.3"
    line = ".".join(asked.split(".")[:2])
    exact = VERSIONS.get(line)
    if exact is None or asked not in (line, exact):
        raise ValueError(f"Kafka {asked} is not pinned here; known: {', '.join(VERSIONS.values())}")
    pom = _POMS / f"pom-{line}.xml"
    entry = f"kafka/{exact}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"
    plain = KafkaJars(exact, cached(entry, lambda place: _fetch(pom, exact, place)))
    archive = cached(f"{entry}-classes", lambda place: _archive_classes(plain, place)) / "classes.jsa"
    # A different JVM than the one that wrote the archive ignores it, and must not warn on a tool's standard output.
    return replace(plain, jvm=(f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:disable"))


def _fetch(pom: Path, version: str, place: Path) -> None:
    print(f"Fetching the jars of Kafka {version} (about 55 MB, once)", file=sys.stderr, flush=True)
    # Maven 3.8 writes its temporary files only beside the pom.
    (place / "pom.xml").write_bytes(pom.read_bytes())
    copy = ("dependency:copy-dependencies", f"-DoutputDirectory={place}")
    subprocess.run(["mvn", "-q", "-B", *copy], check=True, cwd=place, stdout=sys.stderr)


def _archive_classes(jars: KafkaJars, place: Path) -> None:
    """Start one node once so that Java archives the loaded classes: later starts need half the CPU time."""
    broker, controller = reserve_port(), reserve_port()
    with tempfile.TemporaryDirectory() as work:
        properties = Path(work, "node.properties")
        properties.write_text(
            "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
            f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}\n"
            f"log.dirs={work}/data\n"
        )
        format_storage(jars, properties, "AAAAAAAAAAAAAAAAAAAAAA")
        recording = replace(jars, jvm=(f"-XX:ArchiveClassesAtExit={place}/classes.jsa", "-Xlog:disable"))
        node = Child(recording.java("kafka.Kafka", str(properties), role="broker"), log=Path(work, "node.log"))

        def started() -> bool:
            node.check_alive()
            return "Kafka Server started" in node.log.read_text()

        wait_until("Kafka starts once", started)
        node.stop()
    release_port(broker)
    release_port(controller)


def format_storage(jars: KafkaJars, properties: Path, cluster_id: str) -> None:
    """Format a controller's storage with Kafka's own tool and the default feature levels."""
    # With an equals sign, because an id may start with a dash.
    arguments = ("format", f"--cluster-id={cluster_id}", "--config", str(properties))
    done = subprocess.run(
        jars.java("kafka.tools.StorageTool", *arguments, role="tool"), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"Kafka's StorageTool refused {properties}: {done.stdout}{done.stderr}")
