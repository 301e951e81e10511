"""At most one of the operators with records in one namespace acts, for any faults of clocks and networks."""

import pytest
from tests.fakes.lease_candidates import DURATION, ApiServer, Candidate, Machine, settle

from kafka_rebalance.errors import Permanent
from kafka_rebalance.kube.api_errors import Forbidden
from kafka_rebalance.kube.lease import LeadershipLost


@pytest.fixture
def machine():
    return Machine()


@pytest.fixture
def api(machine):
    return ApiServer(machine)


@pytest.fixture
async def candidate(api, machine):
    started = []

    async def start(identity, **how):
        one = Candidate(api, machine, identity, booted=1000 * len(started), **how)
        started.append(one)
        await settle()
        return one

    yield start
    for one in started:
        await one.end()


class TestLooking:
    """A standby knows how old its reading of the Lease is, for the readiness probe."""

    async def test_as_old_as_the_last_answer(self, api, machine, candidate):
        first, second = await candidate("a"), await candidate("b")
        await machine.let_pass(60)
        assert first.lease.standby_age is None
        assert second.lease.standby_age == pytest.approx(0, abs=1)
        api.away = True
        await machine.let_pass(60)
        assert second.lease.standby_age == pytest.approx(60, abs=1)


class TestAcquiring:
    """One operator takes a free Lease; the others wait until it expires or is released."""

    async def test_the_first_takes_it_at_once(self, api, candidate):
        first = await candidate("a")
        assert first.acts
        assert api.lease["metadata"]["name"] == "the-lease"
        spec = api.lease["spec"]
        assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("a", DURATION, 0)
        assert spec["acquireTime"] == spec["renewTime"] == "2026-01-01T00:00:00.000000Z"

    async def test_the_second_waits_while_it_is_renewed(self, api, machine, candidate):
        first, second = await candidate("a"), await candidate("b")
        for _ in range(100):
            await machine.let_pass(1)
            assert (first.acts, second.acts) == (True, False)
        assert (api.holder, api.transitions) == ("a", 0)

    async def test_taken_over_when_it_has_expired_and_not_before(self, api, machine, candidate):
        """Within the duration and one read after the leader died."""
        first, second = await candidate("a"), await candidate("b")
        await machine.let_pass(3)
        await first.end()
        await machine.let_pass(DURATION - 3 - 0.1)
        assert not second.acts
        await machine.let_pass(1.2)
        assert second.acts
        assert (api.holder, api.transitions) == ("b", 1)

    async def test_no_clock_is_compared_with_another(self, api, machine, candidate):
        """The time in a Lease does not count: it may be years old when an operator first reads it."""
        await (await candidate("a")).end()
        api.lease["spec"]["renewTime"] = "1999-01-01T00:00:00.000000Z"
        second = await candidate("b")
        await machine.let_pass(DURATION - 0.1)
        assert not second.acts
        await machine.let_pass(0.2)
        assert second.acts

    async def test_the_holders_word_counts_for_how_long_it_acts(self, machine, candidate):
        """The duration in the Lease counts, not our own."""
        first, second = await candidate("a", duration=60), await candidate("b", duration=15)
        await first.end()
        await machine.let_pass(59.9)
        assert not second.acts
        await machine.let_pass(0.2)
        assert second.acts

    async def test_same_identity_takes_its_own_at_once(self, api, candidate):
        """A restarted container: its predecessor is gone."""
        await (await candidate("a")).end()
        again = await candidate("a")
        assert again.acts
        assert api.transitions == 0

    async def test_one_of_many_wins(self, api, machine, candidate):
        """All see it expire at the same moment; the API server takes one write."""
        await (await candidate("gone")).end()
        many = [await candidate(name) for name in "abcde"]
        await machine.let_pass(DURATION + 1)
        assert sum(one.acts for one in many) == 1
        assert api.transitions == 1

    async def test_lost_answer_to_the_taking(self, api, machine, candidate):
        """The write may have been carried out: the next read shows that the Lease is ours."""
        api.lose_answers = True
        first = await candidate("a")
        assert not first.acts
        api.lose_answers = False
        await machine.let_pass(1)
        assert first.acts

    async def test_api_server_away(self, api, machine, candidate):
        """Retried until it answers."""
        api.away = True
        first = await candidate("a")
        await machine.let_pass(60)
        assert not first.acts
        api.away = False
        await machine.let_pass(1)
        assert first.acts

    async def test_a_missing_right_is_said(self, api, candidate):
        async def forbidden(_name):
            raise Forbidden("leases is forbidden")

        api.get_lease = forbidden
        first = await candidate("a")
        with pytest.raises(Permanent, match="leases is forbidden"):
            await first.task

    async def test_said_once_whom_it_waits_for(self, machine, candidate, caplog):
        caplog.set_level("INFO")
        await candidate("a")
        await candidate("b")
        await machine.let_pass(100)
        assert [m for m in caplog.messages if "waiting" in m] == [
            "waiting for the lease held by a (kafka-rebalance/the-lease)"
        ]


class TestHolding:
    """An operator that may not be the only leader does not act."""

    async def test_not_after_the_process_was_stopped(self, machine, candidate):
        """It detects this from its own clock, before any other code of the process runs."""
        first = await candidate("a")
        machine.jump(DURATION)
        assert not first.acts

    @pytest.mark.parametrize("stopped_for", [4, 9, 14, 15, 16, 60])
    async def test_never_two(self, api, machine, candidate, stopped_for):
        """However long it is cut off, it stops acting before another one starts."""
        first, second = await candidate("a"), await candidate("b")
        await machine.let_pass(7)
        await first.end()  # no further renewals, but it would continue to act
        for _ in range(10 * stopped_for):
            await machine.let_pass(0.1)
            assert not (first.acts and second.acts)
        assert second.acts == (stopped_for > DURATION - 2)

    async def test_counts_from_before_the_renewal_was_sent(self, api, machine, candidate):
        """The duration counts from when the request was sent, however late the answer is."""
        first = await candidate("a")
        api.takes_seconds = 4
        await machine.let_pass(5 + 4)
        sent = 5
        assert api.writes == 2
        await first.end()
        await machine.let_pass(sent + DURATION * 2 / 3 - machine.time - 0.1)
        assert first.acts
        await machine.let_pass(0.2)
        assert not first.acts

    async def test_goes_on_after_an_outage(self, api, machine, candidate):
        """It stops acting when the Lease expires, and acts again after a renewal if no one else took it."""
        first = await candidate("a")
        api.away = True
        await machine.let_pass(9)
        assert first.acts
        await machine.let_pass(60)
        assert not first.acts
        api.away = False
        await machine.let_pass(1)
        assert first.acts
        assert (api.holder, api.transitions) == ("a", 0)

    async def test_lost_answer_to_a_renewal(self, api, machine, candidate):
        """It then reads its own write: no reason to exit."""
        first = await candidate("a")
        api.lose_answers = True
        await machine.let_pass(5)
        api.lose_answers = False
        for _ in range(30):
            await machine.let_pass(1)
            assert first.acts
        assert not first.task.done()

    async def test_an_annotation_by_somebody_is_no_loss(self, api, machine, candidate):
        first = await candidate("a")
        api.lease["metadata"] |= {"annotations": {"note": "x"}, "resourceVersion": "99"}
        await machine.let_pass(DURATION)
        assert first.acts
        assert api.lease["metadata"]["annotations"] == {"note": "x"}

    async def test_deleted_by_somebody(self, api, machine, candidate):
        """Its holder does not notice at once: the others wait as before, and the holder recreates it."""
        first, second = await candidate("a"), await candidate("b")
        await machine.let_pass(1)
        api.lease = None
        for _ in range(40):
            await machine.let_pass(0.5)
            assert (first.acts, second.acts) == (True, False)
        assert api.holder == "a"


class TestLosing:
    """Once another operator had the Lease, the process exits."""

    async def test_taken_while_cut_off(self, api, machine, candidate):
        first = await candidate("a")
        api.away = True
        await machine.let_pass(DURATION)
        api.lease["spec"] |= {"holderIdentity": "b", "acquireTime": "2026-01-01T00:01:00.000000Z"}
        api.lease["metadata"]["resourceVersion"] = "99"
        api.away = False
        await machine.let_pass(1)
        with pytest.raises(LeadershipLost, match=r"kafka-rebalance/the-lease is held by b now") as lost:
            await first.task
        assert lost.value.reason == "LeadershipLost"
        assert not first.acts

    async def test_taken_and_given_up_again(self, api, machine, candidate):
        """The Lease is free, but the knowledge of this process may be outdated."""
        first = await candidate("a")
        api.lease["spec"] |= {"holderIdentity": "", "acquireTime": "2026-01-01T00:01:00.000000Z"}
        api.lease["metadata"]["resourceVersion"] = "99"
        await machine.let_pass(5)
        with pytest.raises(LeadershipLost):
            await first.task
        assert api.holder == ""

    async def test_by_a_second_process_of_the_same_name(self, machine, candidate):
        """The later one leads; the earlier one notices at its next renewal."""
        first = await candidate("a")
        await machine.let_pass(1)
        second = await candidate("a")
        await machine.let_pass(5)
        assert (first.acts, second.acts) == (False, True)
        with pytest.raises(LeadershipLost):
            await first.task


class TestReleasing:
    """After a clean stop no operator has to wait."""

    async def test_the_next_takes_it_at_once(self, api, machine, candidate):
        first, second = await candidate("a"), await candidate("b")
        await machine.let_pass(7)
        await first.end_cleanly()
        assert not first.acts
        assert api.holder == ""
        await machine.let_pass(1)
        assert second.acts
        assert (api.holder, api.transitions) == ("b", 1)

    async def test_only_ones_own(self, api, machine, candidate):
        """A standby, or an operator that lost the Lease, releases nothing."""
        first, second = await candidate("a"), await candidate("b")
        await second.end_cleanly()
        assert api.holder == "a"
        api.lease["spec"] |= {"holderIdentity": "c", "acquireTime": "2026-01-01T00:01:00.000000Z"}
        await first.end_cleanly()
        assert api.holder == "c"

    async def test_a_renewal_that_is_still_on_its_way(self, api, candidate):
        """Its known version is outdated by its own renewal."""
        first = await candidate("a")
        await first.end()
        api.lease["metadata"]["resourceVersion"] = "99"
        await first.lease.release()
        assert api.holder == ""

    async def test_api_server_away(self, api, candidate):
        """The Lease expires then; the operator stops anyway."""
        first = await candidate("a")
        await first.end()
        api.away = True
        await first.lease.release()
        api.away = False
        assert api.holder == "a"
