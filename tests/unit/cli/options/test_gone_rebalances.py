"""The outcome of a rebalance that was removed from a directory."""

from dataclasses import replace
from datetime import UTC, datetime

from tests.unit.cli.commands.resource_runs import ENDED, body, status
from tests.unit.cli.commands.test_history_command import DONE

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.v1alpha1 import REBALANCES, parse_rebalance
from kafka_rebalance.cli.options.gone_rebalances import find_or_gone
from kafka_rebalance.cli.options.resource_lookup import stores
from kafka_rebalance.kube.directory_objects import DirectoryObjects
from kafka_rebalance.kube.record_files import RecordFiles

NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def test_one_whose_run_is_still_open_was_not_rolled_back(tmp_path):
    """It was released with damaged records: its replicas are where the run left them."""
    kube = DirectoryObjects(RecordFiles.to_write(tmp_path), lambda: NOW)
    metadata = (await kube.apply(REBALANCES, body()))["metadata"]
    where = (REBALANCES, metadata["namespace"], metadata["name"])
    run = replace(DONE, uid=metadata["uid"], namespace=where[1], name=where[2], closed_at=None, outcome=None)
    await stores(kube).runs.save(replace(run, started_at=NOW))
    await kube.delete_resource(*where, metadata["uid"])
    found = parse_rebalance(await find_or_gone(kube, *where[1:])).status
    ready = find_condition(found.conditions, ConditionType.READY)
    assert (ready.status, ready.reason) == ("False", "Abandoned")
    assert "as before the run" not in ready.message


async def test_one_that_had_ended_is_not_behind_its_spec(tmp_path):
    """The deletion raises the generation, and nobody will report that any more."""
    kube = DirectoryObjects(RecordFiles.to_write(tmp_path), lambda: NOW)
    metadata = (await kube.apply(REBALANCES, body()))["metadata"]
    where = (REBALANCES, metadata["namespace"], metadata["name"])
    await kube.patch_status(*where, {"status": status(ENDED, generation=metadata["generation"])})
    await kube.delete_resource(*where, metadata["uid"])
    found = parse_rebalance(await find_or_gone(kube, *where[1:]))
    assert found.status.observed_generation == found.metadata.generation > metadata["generation"]
    assert find_condition(found.status.conditions, ConditionType.READY).reason == "Succeeded"
