"""Runs seeds: ``python -m tests.simulation 7``, with all that happened, or ``python -m tests.simulation 0-199,930``.

Exit code 1 if a rule is broken in one of them. ``--stop``: at the first one. ``--log-dirs``: brokers with several log
dirs. ``--more-faults``: also permissions, disks, producers, namespaces and others (`fault_scenario.py`).
``--overlapping``: several rebalances want the same partitions, and calls are executed late. ``--only 3,4``: only these
events happen. A seed that fails is shrunk: events are left out as long as it still fails.
"""

import os
import sys

if __name__ == "__main__" and os.environ.get("PYTHONHASHSEED") != "0":
    # The order of sets of strings must not differ between two runs of a seed. Before the imports: they take most of the
    # CPU of one seed.
    same = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
    os.execve(sys.executable, same, {**os.environ, "PYTHONHASHSEED": "0"})

import time
import traceback

import click
from tests.simulation.shrinking import shrunk
from tests.simulation.world import Kind, simulate

_MODULE = "tests.simulation"


def main(which, kind=Kind.USUAL, *, stop=False, only=None):
    """Simulate one seed, or all that are named."""
    failed, begun = 0, time.process_time()
    for seed in seeds_of(which):
        how = replay(seed, kind, only)
        try:
            world = simulate(seed, kind, only)
        except Exception:  # noqa: BLE001 - the next seeds are run all the same
            click.echo(f"seed {seed}: the simulation itself failed\n  {how}\n{traceback.format_exc()}")
            failed += 1
            continue
        if which.isdecimal():
            click.echo("\n".join(world.trace))
        if world.broken:
            failed += 1
            click.echo(f"seed {seed} at {world.loop.now:.1f} s: {world.broken[0]}\n  {how}")
            if stop:
                break
            if only is None:
                click.echo(f"  with fewer events: {replay(seed, kind, shrunk(world))}")
    click.echo(f"{failed} failed, {time.process_time() - begun:.1f} s of CPU")
    return 1 if failed else 0


def seeds_of(which):
    """Seeds and ranges of seeds, separated by commas."""
    ranges = [part.partition("-") for part in which.split(",")]
    return [seed for first, _, last in ranges for seed in range(int(first), int(last or first) + 1)]


def replay(seed, kind, only=None):
    """The command that shows all that happens in this seed."""
    options = [*kind.options]
    if only is not None:
        options.append(f"--only {','.join(map(str, sorted(only))) or '-'}")
    return " ".join([f"replay: .venv/bin/python -m {_MODULE} {seed}", *options])


def option(name):
    """The numbers after the option; None without it."""
    if name not in sys.argv:
        return None
    return {int(number) for number in sys.argv[sys.argv.index(name) + 1].split(",") if number.isdecimal()}


if __name__ == "__main__":
    chosen = next((kind for kind in Kind if kind.value in sys.argv), Kind.USUAL)
    sys.exit(main(sys.argv[1], chosen, stop="--stop" in sys.argv, only=option("--only")))
