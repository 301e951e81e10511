"""Drained brokers are cordoned where Kafka supports it, recorded first, and uncordoned whenever the run goes back."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.found_by_rounds import found, recorded
from tests.fakes.stopped_clock import StoppedClock
from tests.unit.reconcile.act.cordoned_brokers import (
    FIVE,
    FOUR,
    NOT_OFFERED,
    OURS,
    SOMEBODYS,
    UNSET,
    Cluster,
    body,
    cordons,
    rebalance,
)

from kafka_rebalance.errors import Permanent, Refused, Transient
from kafka_rebalance.kafka.ports import CALL_SECONDS, ConfigOp, ConfigSource, ConfigValue
from kafka_rebalance.kube.api_errors import Forbidden
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.cordoning import Cordons
from kafka_rebalance.reconcile.state.assessment import Replanning, StepBlock
from kafka_rebalance.reconcile.state.record import Stores


async def test_on_record_before_it_is_in_kafka():
    """If the operator is killed in between, the next one knows what to remove."""
    cluster, mine = Cluster(b4=UNSET, b5=UNSET), rebalance()
    await cordons(cluster).keep(mine, [FOUR, FIVE])
    assert cluster.happened == [("record", (4, 5)), (ConfigOp.SET, 4, "*"), (ConfigOp.SET, 5, "*")]
    assert mine.record.run.cordoned == (4, 5)
    await cordons(cluster).keep(mine, [FOUR, FIVE])
    assert len(cluster.happened) == 3


async def test_what_somebody_else_cordoned_or_kafka_does_not_offer_is_left_alone():
    """Kafka 3.9 has no such config; a cordon that existed before stays."""
    cluster, mine = Cluster(b4=SOMEBODYS, b5=NOT_OFFERED), rebalance()
    await cordons(cluster).keep(mine, [FOUR, FIVE])
    assert (cluster.happened, mine.record.run.cordoned) == ([], ())


async def test_who_may_not_use_the_connection_cordons_nothing():
    """Its record does not help: that may be of a server that was mistaken for this cluster."""
    cluster, mine = Cluster(b4=UNSET, b5=UNSET), rebalance(cordoned=(FOUR,))
    mine.refusal = Refused(Reason.CONNECTION_NOT_PERMITTED, "")
    await cordons(cluster).keep(mine, [FOUR, FIVE])
    assert cluster.happened == []


@pytest.mark.parametrize("decommission", [[4, 5], []])
async def test_a_run_that_may_not_start_sets_no_other_cordon(decommission):
    """One on record is set again, because the earlier call may not have reached Kafka; it is removed as ever."""
    cluster, mine = Cluster(b4=OURS, b5=UNSET), rebalance(cordoned=(FOUR,), decommission=decommission)
    await cordons(cluster).keep(mine, [FOUR, FIVE], may_start=False)
    assert 5 not in [broker for _, broker, *_ in cluster.happened if _ != "record"]
    assert cluster.values[FOUR] == (OURS if decommission else UNSET)
    assert mine.record.run.cordoned == ((4,) if decommission else ())


async def test_a_recorded_one_is_set_again_after_a_start():
    """The record may have been written without the write to Kafka."""
    cluster, mine = Cluster(b4=UNSET, b5=UNSET), rebalance(cordoned=(FOUR, FIVE))
    await cordons(cluster).keep(mine, [FOUR, FIVE])
    assert [row[0] for row in cluster.happened] == [ConfigOp.SET, ConfigOp.SET]


async def test_what_somebody_has_cordoned_since_is_not_set_again():
    """After a start, it is not known whether a cordon on record was set. Another value was set by somebody else."""
    cluster, mine = Cluster(b4=SOMEBODYS, b5=UNSET), rebalance(cordoned=(FOUR, FIVE))
    await cordons(cluster).keep(mine, [FOUR, FIVE])
    assert cluster.happened == [(ConfigOp.SET, 5, "*")]
    await cordons(cluster).keep(mine, [FOUR, FIVE])
    assert len(cluster.happened) == 1


async def test_a_dead_broker_is_not_asked():
    """It is cordoned when it returns."""
    cluster, mine = Cluster(b4=UNSET, b5=UNSET), rebalance()
    await cordons(cluster).keep(mine, [FOUR])
    assert mine.record.run.cordoned == (4,)
    await cordons(cluster).keep(mine, [FOUR, FIVE])
    assert mine.record.run.cordoned == (4, 5)


@pytest.mark.parametrize("way", ["deleted", "undone", "superseded"])
async def test_any_way_back_takes_it_away(way):
    """Also a plan that no longer empties the broker."""
    cluster = Cluster(b4=ConfigValue("*", ConfigSource.DYNAMIC_BROKER))
    mine = rebalance(cordoned=(FOUR,), deleting=way == "deleted")
    if way == "undone":
        recorded(mine, run=replace(mine.record.run, undo=True))
    if way == "superseded":
        found(mine, replanning=Replanning(Reason.SUPERSEDED))
    await cordons(cluster).keep(mine, [FOUR, FIVE])
    assert cluster.happened == [(ConfigOp.DELETE, 4, ""), ("record", ())]
    assert mine.record.run.cordoned == ()


async def test_not_by_a_spec_that_was_edited_in_this_round():
    """The plan of the run does not have that broker, and its approval does not cover it."""
    cluster, mine = Cluster(b4=UNSET, b5=UNSET), rebalance(decommission=[4])
    mine.see(body(decommission=[4, 5]))
    await cordons(cluster).keep(mine, [FOUR, FIVE])
    assert cluster.happened == []


async def test_what_is_cordoned_stays_so_while_an_edit_is_planned():
    """Planning may take minutes, and Kafka must place nothing on the broker meanwhile."""
    cluster, mine = Cluster(b4=UNSET, b5=UNSET), rebalance(decommission=[4])
    await cordons(cluster).keep(mine, [FOUR, FIVE])
    before = list(cluster.happened)
    mine.see(body(decommission=[4, 5]))
    await cordons(cluster).keep(mine, [FOUR, FIVE])
    assert cluster.happened == before
    assert mine.record.run.cordoned == (FOUR,)


async def test_without_the_right_to_it_a_decommission_goes_on():
    """The cordon is helpful, but not required."""
    cluster, mine = Cluster(b4=UNSET, b5=UNSET), rebalance()
    cluster.refuses = Permanent("KafkaAuthorizationFailed", "no")
    await cordons(cluster).keep(mine, [FOUR, FIVE])
    assert mine.record.run.cordoned == ()


async def test_a_record_that_may_not_be_written_is_written_later():
    """A webhook or a missing right. The decommission goes on, and the brokers are cordoned once they are on record."""
    cluster, mine, clock = Cluster(b4=UNSET, b5=UNSET), rebalance(), StoppedClock()
    kept = Cordons(cluster, Stores(None, None, cluster), clock)
    cluster.save_refusal = Forbidden("configmaps is forbidden")
    for _ in range(20):
        await kept.keep(mine, [FOUR, FIVE])
    assert (cluster.happened, mine.record.run.cordoned) == ([], ())
    cluster.save_refusal = None
    await kept.keep(mine, [FOUR, FIVE])
    assert cluster.happened == []
    clock.at += timedelta(minutes=1)
    await kept.keep(mine, [FOUR, FIVE])
    assert cluster.happened == [("record", (4, 5)), (ConfigOp.SET, 4, "*"), (ConfigOp.SET, 5, "*")]


async def test_one_that_refused_is_asked_again_if_another_cannot_be_struck_off():
    """The API server refuses to take broker 4 off the record, which does not permit its cordon."""
    cluster, mine, clock = Cluster(b4=UNSET, b5=UNSET), rebalance(), StoppedClock()
    kept = Cordons(cluster, Stores(None, None, cluster), clock)
    cluster.denied = {FOUR: "CLUSTER_AUTHORIZATION_FAILED: no", FIVE: "INVALID_CONFIG: not now"}
    cluster.saves_until_failure, cluster.failure = 1, Forbidden("configmaps is forbidden")
    with pytest.raises(Forbidden):
        await kept.keep(mine, [FOUR, FIVE])
    cluster.denied = {}
    clock.at += timedelta(minutes=1)
    await kept.keep(mine, [FOUR, FIVE])
    assert cluster.values[FIVE] == OURS


@pytest.mark.parametrize("fails", [False, True], ids=["at once", "after a failure of the API server"])
async def test_what_kafka_does_not_permit_is_not_on_record(fails):
    """The run, or another owner of the cluster, would remove a cordon that somebody else sets later."""
    cluster, mine = Cluster(b4=UNSET, b5=UNSET), rebalance()
    cluster.denied = dict.fromkeys([FOUR, FIVE], "CLUSTER_AUTHORIZATION_FAILED: no")
    if fails:
        cluster.saves_until_failure = 1
        with pytest.raises(Transient):
            await cordons(cluster).keep(mine, [FOUR, FIVE])
        assert mine.record.run.cordoned == (FOUR, FIVE)
    await cordons(cluster).keep(mine, [FOUR, FIVE])
    assert mine.record.run.cordoned == ()
    assert cluster.happened[-1] == ("record", ())
    cluster.values, cluster.denied = {FOUR: OURS, FIVE: OURS}, {}
    recorded(mine, run=replace(mine.record.run, undo=True))
    await cordons(cluster).keep(mine, [FOUR, FIVE])
    assert cluster.values == {FOUR: OURS, FIVE: OURS}


async def test_what_may_be_set_stays_on_record():
    """The whole call fails: one of the brokers may have carried it out."""
    cluster, mine = Cluster(b4=UNSET, b5=UNSET), rebalance()
    cluster.denied = {FIVE: Permanent("KafkaAuthenticationFailed", "no")}
    await cordons(cluster).keep(mine, [FOUR, FIVE])
    assert cluster.values[FOUR] == OURS
    assert mine.record.run.cordoned == (FOUR, FIVE)


class TestNotPermittedAfterAnEarlierCall:
    """Of a process that was killed before it got the answer, for example."""

    @pytest.fixture
    def started(self):
        """A run that was just loaded, and a cluster that permits no cordon."""
        cluster, mine, clock = Cluster(b4=UNSET, b5=UNSET), rebalance([4]), StoppedClock()
        cluster.denied = dict.fromkeys([FOUR, FIVE], "CLUSTER_AUTHORIZATION_FAILED: no")
        mine.memory = replace(mine.memory, unanswered_at=clock.monotonic())
        return cluster, mine, clock, Cordons(cluster, Stores(None, None, cluster), clock)

    async def test_it_stays_on_record_until_no_call_can_be_late(self, started):
        """What others set after that is not removed."""
        cluster, mine, clock, kept = started
        for _ in range(2):
            await kept.keep(mine, [FOUR, FIVE])
            assert mine.record.run.cordoned == (FOUR,)
            clock.at += timedelta(seconds=CALL_SECONDS / 2)
        await kept.keep(mine, [FOUR, FIVE])
        assert mine.record.run.cordoned == ()
        assert [row[:2] for row in cluster.happened if row[0] is ConfigOp.SET] == [(ConfigOp.SET, 4), (ConfigOp.SET, 5)]
        cluster.values, cluster.denied = {FOUR: OURS, FIVE: OURS}, {}
        recorded(mine, run=replace(mine.record.run, undo=True))
        await kept.keep(mine, [FOUR, FIVE])
        assert cluster.values == {FOUR: OURS, FIVE: OURS}

    async def test_a_cordon_that_is_there_stays_on_record(self, started):
        """The earlier call may have set it."""
        cluster, mine, clock, kept = started
        await kept.keep(mine, [FOUR, FIVE])
        cluster.values[FOUR] = OURS
        for _ in range(3):
            clock.at += timedelta(seconds=CALL_SECONDS)
            await kept.keep(mine, [FOUR, FIVE])
        assert mine.record.run.cordoned == (FOUR,)

    @pytest.mark.parametrize("there", [False, True])
    async def test_on_the_way_back(self, started, there):
        """Removing it is not permitted either."""
        cluster, mine, clock, kept = started
        cluster.values[FOUR] = OURS if there else UNSET
        recorded(mine, run=replace(mine.record.run, undo=True))
        await kept.keep(mine, [FOUR, FIVE])
        assert mine.record.run.cordoned == (FOUR,)
        clock.at += timedelta(seconds=CALL_SECONDS)
        await kept.keep(mine, [FOUR, FIVE])
        assert mine.record.run.cordoned == ((FOUR,) if there else ())


class TestRefusedAgainAndAgain:
    """A server may refuse all changes in each round, with another text each time, and so fill the log."""

    @pytest.fixture
    def refusing(self):
        """A minute of rounds, with what the brokers answer."""
        cluster, clock = Cluster(**{f"b{broker}": UNSET for broker in range(1, 51)}), StoppedClock()
        kept = Cordons(cluster, Stores(None, None, cluster), clock)

        async def rounds(mine, answer):
            for number in range(120):
                cluster.denied = dict.fromkeys(cluster.values, f"{answer}: no {number}")
                await kept.keep(mine, list(cluster.values))
                clock.at += timedelta(seconds=0.5)
            return sum(broker == 1 for op, broker, *_ in cluster.happened if op != "record")

        rounds.cluster, rounds.kept, rounds.clock = cluster, kept, clock
        return rounds

    async def test_setting_it(self, refusing, caplog):
        mine = rebalance(decommission=range(1, 51))
        assert await refusing(mine, "INVALID_CONFIG") == 6
        assert len(caplog.messages) == 6
        assert caplog.messages[0] == (
            "kafka/r: Set of cordoned.log.dirs on brokers 1, 2, 3 and 47 more: INVALID_CONFIG: no 0"
        )

    async def test_another_broker_does_not_wait(self, refusing):
        """Nor does a removal."""
        mine = rebalance(decommission=range(1, 52))
        await refusing(mine, "INVALID_CONFIG")
        cluster = refusing.cluster
        cluster.values[BrokerId(51)], cluster.denied = UNSET, {}
        await refusing.kept.keep(mine, list(cluster.values))
        assert cluster.values[BrokerId(51)] == OURS
        assert cluster.values[BrokerId(1)] == UNSET
        recorded(mine, run=replace(mine.record.run, undo=True))
        await refusing.kept.keep(mine, list(cluster.values))
        assert (ConfigOp.DELETE, 1, "") in cluster.happened

    async def test_it_is_set_in_the_end(self, refusing):
        mine = rebalance(decommission=range(1, 51))
        await refusing(mine, "INVALID_CONFIG")
        refusing.clock.at += timedelta(seconds=60)
        refusing.cluster.denied = {}
        await refusing.kept.keep(mine, list(refusing.cluster.values))
        assert set(refusing.cluster.values.values()) == {OURS}

    @pytest.mark.parametrize("answer", ["INVALID_CONFIG", "CLUSTER_AUTHORIZATION_FAILED"])
    async def test_removing_it(self, refusing, caplog, answer):
        """Also where a late call keeps it on record."""
        mine = rebalance(range(1, 51), deleting=True)
        mine.memory = replace(mine.memory, unanswered_at=refusing.clock.monotonic() + 60)
        assert await refusing(mine, answer) == 6
        assert len(caplog.messages) == 6
        assert len(mine.record.run.cordoned) == 50

    async def test_others_that_need_it_do_not_wait(self, refusing):
        """The record of a run without the last claim to a cordon is written at once."""
        mine, other = (rebalance([1], deleting=True) for _ in range(2))
        await refusing(mine, "INVALID_CONFIG")
        await refusing.kept.keep(mine, list(refusing.cluster.values), [mine, other])
        assert mine.record.run.cordoned == ()


class TestHeldBack:
    """By a missing approval, for example: then broker configs must not change, just like replicas."""

    async def test_nothing_is_begun(self):
        """The cordon is set when the block is gone."""
        cluster, mine = Cluster(b4=UNSET, b5=UNSET), rebalance()
        found(mine, step_block=StepBlock(Reason.AWAITING_APPROVAL, "set spec.approval.planHash"))
        await cordons(cluster).keep(mine, [FOUR, FIVE])
        assert (cluster.happened, mine.record.run.cordoned) == ([], ())
        found(mine, step_block=None)
        await cordons(cluster).keep(mine, [FOUR, FIVE])
        assert mine.record.run.cordoned == (4, 5)

    async def test_what_was_begun_stays(self):
        """And it is completed if the operator was killed before the write to Kafka."""
        cluster, mine = Cluster(b4=UNSET, b5=UNSET), rebalance(cordoned=(FOUR,))
        found(mine, step_block=StepBlock(Reason.SUSPENDED, "spec.execution.suspend is set"))
        await cordons(cluster).keep(mine, [FOUR, FIVE])
        assert cluster.happened == [(ConfigOp.SET, 4, "*")]


async def test_a_cordon_that_somebody_changed_is_not_removed():
    """The cordon is not removed, and is not on record any more."""
    cluster, mine = Cluster(b4=SOMEBODYS, b5=OURS), rebalance([4, 5], deleting=True)
    await cordons(cluster).keep(mine, [FOUR, FIVE])
    assert cluster.happened == [(ConfigOp.DELETE, 5, ""), ("record", ())]
    assert cluster.values == {FOUR: SOMEBODYS, FIVE: UNSET}


async def test_the_last_of_two_runs_removes_it():
    """Each has the cordon on record. Until the last one goes back, it stays."""
    cluster, first, second = Cluster(b4=UNSET), rebalance(decommission=[4]), rebalance(decommission=[4])
    await cordons(cluster).keep(first, [FOUR])
    await cordons(cluster).keep(second, [FOUR], [first, second])
    assert (first.record.run.cordoned, second.record.run.cordoned) == ((4,), (4,))
    first, second = (rebalance([4], deleting=True) for _ in range(2))
    await cordons(cluster).keep(first, [FOUR], [first, second])
    assert (first.record.run.cordoned, cluster.values[FOUR]) == ((), OURS)
    await cordons(cluster).keep(second, [FOUR], [first, second])
    assert (second.record.run.cordoned, cluster.values[FOUR]) == ((), UNSET)


async def test_the_first_of_two_runs_waits_for_its_late_call():
    """The second one does not know that Kafka may still execute a call of the first one, so it leaves the cordon."""
    cluster, clock = Cluster(b4=OURS), StoppedClock()
    first, second = (rebalance([4], deleting=True) for _ in range(2))
    first.memory = replace(first.memory, cordons_unanswered={FOUR: clock.monotonic()})
    both = Cordons(cluster, Stores(None, None, cluster), clock)
    await both.keep(first, [FOUR], [first, second])
    await both.keep(second, [FOUR], [first, second])
    assert (first.record.run.cordoned, second.record.run.cordoned, cluster.values[FOUR]) == ((4,), (), OURS)
    clock.at += timedelta(seconds=CALL_SECONDS)
    await both.keep(first, [FOUR], [first, second])
    assert (first.record.run.cordoned, cluster.values[FOUR]) == ((), UNSET)


async def test_a_broker_that_is_to_be_emptied_again_is_cordoned_again():
    """Its cordon was removed, and then the record could not be written. The spec is edited back before the next try."""
    cluster, mine = Cluster(b4=UNSET), rebalance(decommission=[4])
    kept = cordons(cluster)
    await kept.keep(mine, [FOUR])
    found(mine, replanning=Replanning(Reason.SUPERSEDED))
    cluster.saves_until_failure = 0
    with pytest.raises(Transient):
        await kept.keep(mine, [FOUR])
    assert cluster.values[FOUR] == UNSET
    found(mine, replanning=None)
    await kept.keep(mine, [FOUR])
    assert (mine.record.run.cordoned, cluster.values[FOUR]) == ((FOUR,), OURS)
