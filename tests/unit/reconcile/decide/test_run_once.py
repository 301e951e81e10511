"""What a restored resource must not carry out again, and when an ended one is deleted."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api.v1alpha1 import COMPLETED_ANNOTATION
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.reconcile.decide.run_once import completed_key, outlived, restored_run
from kafka_rebalance.reconcile.state.desired import Desired
from kafka_rebalance.reconcile.state.rebalance import Rebalance

KAFKA = {"kafka": {"bootstrapServers": "kafka:9092"}}


def body(annotation=None, *, name="r", **spec):
    metadata = {"name": name, "namespace": "kafka", "uid": "u-2"}
    metadata |= {"annotations": {COMPLETED_ANNOTATION: annotation}} if annotation is not None else {}
    return {"metadata": metadata, "spec": {**KAFKA, **spec}}


def ended(outcome=RunOutcome.SUCCEEDED, **spec):
    """A rebalance whose run has ended at noon."""
    rebalance = Rebalance.of(body(**spec))
    run = Run(
        uid="u-2",
        namespace="kafka",
        name="r",
        cluster_id="c",
        run_id="run-1",
        planning_hash=rebalance.desired.planning_hash,
        plan_hash="sha256:1",
        opened_at=NOON,
        closed_at=NOON,
        outcome=outcome,
        undo=outcome is not RunOutcome.SUCCEEDED,
    )
    rebalance.record = replace(rebalance.record, run=run, was_read=True)
    return rebalance


def restored(annotation, cluster_id="c", **about):
    return restored_run(Desired.of(body(annotation, **about)), cluster_id)


class TestKey:
    @pytest.mark.parametrize("outcome", [RunOutcome.SUCCEEDED, RunOutcome.UNDONE, RunOutcome.ROLLED_BACK_PARTIALLY])
    def test_round_trip(self, outcome):
        """The restored run ends what is asked for as the stored one did."""
        rebalance = ended(outcome)
        found = restored(completed_key(rebalance))
        run = rebalance.record.run
        assert found == replace(run, run_id="", started_at=NOON)
        assert found.restored
        assert not run.restored

    def test_it_is_written_once(self):
        rebalance = ended()
        rebalance.see(body(completed_key(rebalance)))
        assert completed_key(rebalance) is None

    def test_only_of_what_has_ended(self):
        rebalance = ended()
        rebalance.record = replace(rebalance.record, run=replace(rebalance.record.run, closed_at=None, outcome=None))
        assert completed_key(rebalance) is None
        rebalance.record = replace(rebalance.record, run=None)
        assert completed_key(rebalance) is None

    def test_a_restored_run_writes_nothing(self):
        """The annotation is there already."""
        rebalance = ended()
        rebalance.record = replace(rebalance.record, run=restored(completed_key(rebalance)))
        assert completed_key(rebalance) is None


class TestRestored:
    @pytest.mark.parametrize(
        ("cluster_id", "about"), [("other", {}), ("c", {"name": "copy"}), ("c", {"strategy": "PreferredLeaders"})]
    )
    def test_something_else(self, cluster_id, about):
        """Another cluster, another name, or another request: it is carried out."""
        key = completed_key(ended())
        assert restored(key, cluster_id, **about) is None

    def test_fields_that_do_not_decide_the_plan(self):
        """A change of the limits does not start another run."""
        assert restored(completed_key(ended()), throttle={"leaderRate": "1Mi"}) is not None

    def test_before_the_cluster_is_known(self):
        assert restored(completed_key(ended()), "") is None

    @pytest.mark.parametrize("change", [{"completedAt": "noon"}, {"outcome": "Great"}, {"completedAt": "2026-01-01"}])
    def test_a_damaged_annotation(self, change):
        assert restored(json.dumps(json.loads(completed_key(ended())) | change)) is None

    @pytest.mark.parametrize("at", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"])
    def test_a_time_that_does_not_exist_in_utc(self, at):
        """It could not be written to the status."""
        assert restored(json.dumps(json.loads(completed_key(ended())) | {"completedAt": at})) is None

    def test_a_time_of_another_zone(self):
        found = restored(json.dumps(json.loads(completed_key(ended())) | {"completedAt": "2026-01-01T02:00:00+02:00"}))
        assert found.closed_at.isoformat() == "2026-01-01T00:00:00+00:00"

    @pytest.mark.parametrize("change", [{"planHash": "x" * 300}, {"clusterId": "x" * 300}, {"planHash": {"a": 1}}])
    def test_what_the_operator_does_not_write(self, change):
        """It would be shown in the status, and stored."""
        assert restored(json.dumps(json.loads(completed_key(ended())) | change), "") is None

    @pytest.mark.parametrize("text", ["", "yes", "{}", "[]", "null", "[" * 2000, '{"name":' * 300 + "1" + "}" * 300])
    def test_not_ours(self, text):
        assert restored(text) is None


class TestTimeToLive:
    @pytest.mark.parametrize(
        ("seconds", "expected"),
        [(None, False), (0, True), (60, True), (61, False)],
        ids=["absent", "0", "over", "not yet"],
    )
    def test_counts_from_the_end(self, seconds, expected):
        spec = {} if seconds is None else {"ttlSecondsAfterFinished": seconds}
        assert outlived(ended(**spec), NOON + timedelta(seconds=60)) is expected

    def test_resources_that_need_a_person_stay(self):
        rebalance = ended(RunOutcome.ROLLED_BACK_PARTIALLY, ttlSecondsAfterFinished=0)
        assert not outlived(rebalance, NOON + timedelta(days=1))
