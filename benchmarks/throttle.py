"""Measures the operator's throttle on real brokers and a real API server: accuracy, reaction time and side effects.

python -m benchmarks.throttle [rates] [reaction] [clients] [catchup]     # all of them, in half an hour; 10 GB of disk

Nothing here passes or fails: it prints tables with the machine they were measured on, and writes all values as JSON to
`benchmarks/results/`.
"""

import sys
from pathlib import Path

from benchmarks.throttle_catchup import catch_up
from benchmarks.throttle_clients import client_latency
from benchmarks.throttle_machine import Watched, idle_cores, machine_facts
from benchmarks.throttle_rates import achieved_rates
from benchmarks.throttle_reaction import reaction
from benchmarks.throttle_report import Report
from benchmarks.throttle_stage import stage

PARTS = {"rates": achieved_rates, "reaction": reaction, "clients": client_latency, "catchup": catch_up}
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Run the named parts, or all of them."""
    chosen = sys.argv[1:] or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
    idle = idle_cores()
    with stage() as world:
        report = Report(machine_facts(world, idle), RESULTS / f"throttle-{world.kafka.jars.version}.json")
        for name in chosen:
            with Watched() as watched:
                section = PARTS[name](world, idle)
            report.add(name, section, watched)


if __name__ == "__main__":
    main()
