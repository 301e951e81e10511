"""Leaves events of a failing seed out, one at a time, as long as a rule is still broken."""

from tests.simulation.world import simulate


def shrunk(world, simulated=simulate):
    """The numbers of events with which the seed still fails. An event less changes what is drawn later."""
    kept = set(range(world.happened))
    for number in reversed(range(world.happened)):
        without = kept - {number}
        if simulated(world.seed, world.kind, without).broken:
            kept = without
    return kept
