"""`python -m e2e.demo` runs the demo. With `KEEP=1` in the environment, or any argument, it is left running at the end.

The exit code is 0 if every check passed, 1 if one failed, 130 after Ctrl-C.
"""

import os
import signal
import sys

from e2e.bench.child_settings import set_defaults
from e2e.demo.layout import Layout
from e2e.demo.next_steps import next_steps
from e2e.demo.prompt import RESOURCE, Prompt
from e2e.demo.relief import Relief, Skew
from e2e.demo.running import account, end, run
from e2e.demo.screen import Screen
from e2e.demo.stage import NAMESPACE, Stage
from e2e.demo.story import Story

_LAYOUT = Layout(brokers=6, hosts=3, topics=60, partitions_per_topic=10)
_SKEW = Skew(partitions=72, heat={1: 10}, quiet_rate=0.5, samples=7, seconds_between=4, minimum_coverage="15s")


def main() -> int:
    """Run the whole demo; returns its exit code."""
    set_defaults()
    screen = Screen()
    screen.section(
        "Real servers start",
        f"Six Kafka brokers in three racks: {_LAYOUT.partitions} partitions with {_LAYOUT.megabytes} MB of records "
        "are on the first three,\nthe others are empty. Beside them a Kubernetes API server, and the operator as its "
        "users run it. Nothing is simulated.",
    )
    stage = Stage(_LAYOUT)
    keep = os.environ.get("KEEP", "0") != "0" or bool(sys.argv[1:])
    return run(stage, screen, lambda: _tell(stage, screen, keep=keep))


def _tell(stage: Stage, screen: Screen, *, keep: bool) -> None:
    prompt = Prompt(stage, screen)
    story = Story(stage, screen, prompt)
    story.measure()
    story.undo(story.spread())
    screen.section(
        "Act 3: a hot broker",
        "Replicas and leaders are even, but one broker leads the partitions to which most is written. Samples show\n"
        "the rates. The resource evens them with few bytes copied, and nothing moves before the plan is approved.",
    )
    Relief(stage, screen, prompt, _SKEW).run()
    end(stage, screen)
    if keep:
        _keep(stage, screen)


def _keep(stage: Stage, screen: Screen) -> None:
    """Wait for Ctrl-C; the records written meanwhile are verified too."""
    stage.start_traffic()
    screen.section("What to try next", "KEEP=1 was given.")
    environment = stage.environment()
    screen.output(
        next_steps(
            kubeconfig=environment["KUBECONFIG"],
            path=stage.commands,
            bootstrap=stage.kafka.bootstrap_servers,
            directory=str(stage.directory),
            lake=str(stage.lake),
            log=str(stage.operator.log),
            namespace=NAMESPACE,
            resource=RESOURCE,
        )
    )
    try:
        signal.pause()
    except KeyboardInterrupt:
        account(stage, screen)


if __name__ == "__main__":
    sys.exit(main())
