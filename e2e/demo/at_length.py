"""`python -m e2e.demo.at_length` runs the third act of the demo alone: more brokers, more traffic, and for longer.

The exit codes are those of the demo.
"""

import sys

from e2e.bench.child_settings import set_defaults
from e2e.demo.layout import Layout
from e2e.demo.prompt import Prompt
from e2e.demo.relief import Relief, Skew
from e2e.demo.running import end, run
from e2e.demo.screen import Screen
from e2e.demo.stage import Stage

_LAYOUT = Layout(brokers=9, hosts=9, topics=27, partitions_per_topic=12)
_SKEW = Skew(
    partitions=162,
    heat={1: 10, 2: 5, 3: 3},
    quiet_rate=0.25,
    samples=13,
    seconds_between=30,
    minimum_coverage="5m",
)


def main() -> int:
    """Run it; returns its exit code."""
    set_defaults()
    screen = Screen()
    screen.section(
        "Real servers start",
        f"Nine Kafka brokers in three racks hold {_LAYOUT.partitions} partitions with {_LAYOUT.megabytes} MB of "
        "records.\nBeside them a Kubernetes API server, and the operator as its users run it. Nothing is simulated.",
    )
    stage = Stage(_LAYOUT)
    return run(stage, screen, lambda: _tell(stage, screen))


def _tell(stage: Stage, screen: Screen) -> None:
    screen.section(
        "Three hot brokers",
        "Replicas and leaders are even, but three brokers lead the partitions to which most is written. Six minutes\n"
        "of samples show the rates. The resource evens them with few bytes copied. Nothing moves before the plan is\n"
        "approved. Then the rates are measured for six more minutes.",
    )
    Relief(stage, screen, Prompt(stage, screen), _SKEW).run(compare=True)
    end(stage, screen)


if __name__ == "__main__":
    sys.exit(main())
