"""The session of the README: brokers are added, and the replicas move there and back, on real brokers."""

import os
import sys
import tempfile
from pathlib import Path

import yaml

from e2e.bench.judge import Judge
from e2e.bench.kafka import KafkaCluster, racks_of
from e2e.bench.load import create_topics, fill
from e2e.cast.recording import Frame, Recording

_EXAMPLE = Path(__file__).parents[2] / "examples" / "add-brokers.yaml"
_ON_THREE = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
_TOPICS = {"orders": [_ON_THREE[at % 3] for at in range(6)], "payments": [_ON_THREE[at % 3] for at in range(3)]}
_BYTES = 8_000_000
"""Of each partition: together with the rate, a run of a quarter of a minute."""
_RATE = "2Mi"
_FILE = "add-brokers.yaml"


def session() -> list[Frame]:
    """Record it. RuntimeError if a command fails, or if the replicas are not back at the end."""
    # As in the end-to-end tests: small fetches keep a throttled copy at its rate.
    settings = {"replica.fetch.max.bytes": "65536"}
    with KafkaCluster(racks_of(range(1, 6)), properties=settings) as kafka, tempfile.TemporaryDirectory() as directory:
        create_topics(kafka, _TOPICS)
        fill(kafka, {(topic, at): _BYTES for topic, rows in _TOPICS.items() for at in range(len(rows))})
        before = Judge(kafka).describe_topics(*_TOPICS)
        _write(Path(directory, _FILE), kafka.bootstrap_servers)
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        recording = Recording(Path(directory), {"PATH": path})
        recording.command(f"kafka-rebalance snapshot --bootstrap-servers {kafka.address(1)} -o cluster.json", pause=1)
        recording.command(f"kafka-rebalance plan --cluster cluster.json --rebalance {_FILE}", pause=6)
        recording.command(f"kafka-rebalance run {_FILE} --records records", pause=3)
        recording.command(f"kafka-rebalance run {_FILE} --records records --rollback", pause=0)
        if Judge(kafka).describe_topics(*_TOPICS) != before:
            raise RuntimeError("the replicas are not back")
        return recording.frames


def _write(path: Path, servers: str) -> None:
    body = yaml.safe_load(_EXAMPLE.read_text(encoding="utf-8"))
    body["spec"]["kafka"] = {"bootstrapServers": servers}
    del body["spec"]["topics"]  # its pattern would match nothing here, and there would be a warning
    body["spec"]["throttle"] = {"leaderRate": _RATE, "followerRate": _RATE}
    path.write_text(yaml.safe_dump(body), encoding="utf-8")
