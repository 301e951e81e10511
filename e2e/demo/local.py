"""`python -m e2e.demo.local` tells the demo's story without Kubernetes: brokers, a file, and `kafka-rebalance run`.

The exit codes are those of the demo.
"""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from e2e.bench.child_settings import set_defaults
from e2e.demo.broker_stage import BrokerStage, mortal
from e2e.demo.facts import (
    Facts,
    check_leaders,
    check_replicas,
    check_restored,
    check_tidy,
    moves_between,
    observe,
    show,
)
from e2e.demo.layout import Layout
from e2e.demo.running import end, run
from e2e.demo.screen import Screen

_LAYOUT = Layout(brokers=6, hosts=3, topics=20, partitions_per_topic=6)
_SLOW, _FASTER = "3Mi", "25Mi"
_SECONDS_BETWEEN_LINES = 2
_PERCENT = re.compile(r" (\d+)%  ")


def main() -> int:
    """Run it; returns its exit code."""
    set_defaults()
    screen = Screen()
    screen.section(
        "Real brokers start",
        f"Six Kafka brokers in three racks: {_LAYOUT.partitions} partitions with {_LAYOUT.megabytes} MB of records "
        "are on the first three,\nthe others are empty. There is no Kubernetes, and nothing is simulated.",
    )
    stage = BrokerStage(_LAYOUT)
    return run(stage, screen, lambda: _tell(stage, screen))


def _tell(stage: BrokerStage, screen: Screen) -> None:
    story = _LocalStory(stage, screen)
    story.undo(story.spread())
    end(stage, screen)


class _LocalStory:
    """Explains what happens on a started stage."""

    def __init__(self, stage: BrokerStage, screen: Screen) -> None:
        self._stage = stage
        self._screen = screen
        self._records = stage.directory / "records"

    def spread(self) -> Facts:
        """Spread the topics over all six brokers; the command is killed on the way, and repeated."""
        self._screen.section(
            "Three new brokers get their share",
            "Brokers 4, 5 and 6 are empty. The file asks for an even spread with the fewest moves. On the way the\n"
            "command is killed with -9, its file gets a higher throttle, and the same command goes on.",
        )
        before = observe(self._stage.kafka)
        show(self._screen, self._stage.kafka, before)
        self._run(self._file("add-brokers.yaml", _SLOW), stop_at=30, number=signal.SIGKILL)
        self._status("add-brokers")
        code = self._run(self._file("add-brokers.yaml", _FASTER))
        self._screen.check("the exit code is 0", holds=code == 0, otherwise=code)
        after = observe(self._stage.kafka)
        show(self._screen, self._stage.kafka, before, after)
        moves = moves_between(before, after)
        bound = self._lower_bound("add-brokers")
        self._screen.check(
            f"{moves} replicas are on a new broker: not one above the lower bound of all balanced plans",
            holds=moves == bound,
            otherwise=bound,
        )
        check_replicas(self._screen, self._stage.kafka, after)
        check_leaders(self._screen, self._stage.kafka, after)
        check_tidy(self._screen, after)
        return after

    def undo(self, origin: Facts) -> None:
        """Start to drain broker 6, stop with Ctrl-C, and roll back."""
        self._screen.section(
            "A change of mind",
            "Broker 6 is being emptied. Ctrl-C stops at a rest point: nothing is left in flight, no throttle is left.\n"
            "Then --rollback restores the replicas, in the same small steps and under the same throttle.",
        )
        file = self._file("decommission.yaml", _SLOW)
        code = self._run(file, stop_at=30, number=signal.SIGINT)
        self._screen.check("the exit code is 130", holds=code == 130, otherwise=code)
        half_way = observe(self._stage.kafka)
        check_tidy(self._screen, half_way)
        moved = moves_between(origin, half_way)
        self._screen.check(f"there is something to roll back: {moved} replicas moved", holds=moved > 0)
        code = self._run(self._file("decommission.yaml", _FASTER), "--rollback")
        self._screen.check("the exit code is 0", holds=code == 0, otherwise=code)
        after = observe(self._stage.kafka)
        show(self._screen, self._stage.kafka, origin, after)
        check_restored(self._screen, self._stage.kafka, origin)
        check_tidy(self._screen, after)

    def _file(self, example: str, rate: str) -> Path:
        path = self._stage.fill_in(example, {"leaderRate": rate, "followerRate": rate})
        self._screen.command(
            f"cat {example}   # examples/{example} with this cluster's bootstrap servers, at {rate}B/s"
        )
        text = path.read_text()
        self._screen.output(text[text.index("spec:") :])
        return path

    def _run(self, file: Path, *options: str, stop_at: int = 101, number: int = 0) -> int:
        """Carry out the file; at this percentage, send the signal. Returns the exit code."""
        command = ("kafka-rebalance", "run", str(file), "--records", str(self._records), *options)
        self._screen.command(" ".join(command))
        shown, state = float("-inf"), ""
        with subprocess.Popen(
            mortal(command), env=self._stage.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            for line in process.stdout or ():
                word, now = line.split()[0] if line.split() else "", time.monotonic()
                if word != state or now - shown >= _SECONDS_BETWEEN_LINES:
                    self._screen.output(line)
                    shown, state = now, word
                percent = _PERCENT.search(line)
                if percent is not None and int(percent[1]) >= stop_at:
                    self._screen.command("kill -9" if number == signal.SIGKILL else "Ctrl-C")
                    process.send_signal(number)
                    stop_at = 101
        return process.returncode

    def _status(self, name: str, *options: str) -> None:
        command = ("kafka-rebalance", "status", name, "-n", "kafka", "--records", str(self._records), *options)
        self._screen.command(" ".join(command))
        self._screen.output(self._stage.run(*command))

    def _lower_bound(self, name: str) -> int:
        where = ("-n", "kafka", "--records", str(self._records))
        status = json.loads(self._stage.run("kafka-rebalance", "status", name, *where, "-o", "json"))
        bound: int = status["plan"]["lowerBound"]
        return bound


if __name__ == "__main__":
    sys.exit(main())
