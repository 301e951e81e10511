"""An open run without a resource, while another owner claims its cluster."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.fakes.kube_in_memory import KubeInMemory
from tests.unit.cli.commands.test_history_command import DONE

from kafka_rebalance.cli.options.resource_lookup import stores
from kafka_rebalance.model.run import RunOutcome
from kafka_rebalance.reconcile.act.cluster_owners import ClusterOwners
from kafka_rebalance.reconcile.act.cluster_work import Work

NOW = datetime(2026, 1, 2, tzinfo=UTC)


class Deleting:
    """The engine of the former owner closes the run before the API server answers that the resource is gone."""

    def __init__(self, stored, end):
        self.stored, self.end = stored, end

    async def exists(self, namespace, name, uid):
        await self.end()
        return False


@pytest.mark.parametrize("end", ["handed over", "forgotten"])
async def test_a_run_that_has_ended_is_not_closed_again(end):
    """Its heir would lose what it inherits, or a deleted record would return."""
    kube = KubeInMemory()
    stored = stores(kube)
    run = replace(DONE, started_at=NOW, closed_at=None, outcome=None)
    handed_over = replace(run, closed_at=NOW, outcome=RunOutcome.TAKEN_OVER, successor="heir")
    closed = handed_over if end == "handed over" else None
    await stored.runs.save(run)

    async def ended():
        if closed is None:
            await stored.runs.delete(run.uid)
        else:
            await stored.runs.save(closed)

    owners = ClusterOwners(kube, stored, Deleting(stored, ended), lambda _: None, lambda _: False, lambda: NOW)
    await owners._abandon_orphans(Work((run,), throttled=False))
    assert await stored.runs.load(run.uid) == closed
