"""Which resources continue instead of rollbacks: in each round, and before a run is let go.

Replaces ``successor`` and ``full_successor`` of assessments.
"""

from collections.abc import Collection
from dataclasses import replace

from kafka_rebalance.reconcile.act.run_records import RunRecords
from kafka_rebalance.reconcile.decide.teardown import successors_of
from kafka_rebalance.reconcile.state.pauses import with_pauses
from kafka_rebalance.reconcile.state.rebalance import Rebalance


async def choose_successors(records: RunRecords, rebalances: Collection[Rebalance]) -> dict[str, str]:
    """Set the successor of each rollback. Returns, by uid of each successor, whom it takes over. Needs no Kafka."""
    await records.count_handed_over(rebalances)
    successors, full = successors_of(rebalances)
    async for r in with_pauses(rebalances):
        r.assessment = replace(r.assessment, successor=successors.get(r.uid), full_successor=full.get(r.uid))
    return {successors[old.uid].uid: old.name for old in rebalances if old.uid in successors}


def waiting_for_heirs(rebalances: Collection[Rebalance]) -> list[Rebalance]:
    """Those whose run is let go when they are prepared again: it is loaded, so it is known who continues with it."""
    seeking = [r for r in rebalances if r.memory.heir_sought_until is not None]
    return [r for r in seeking if r.record.open_run is not None and r.memory.problem is None]
