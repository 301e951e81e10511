"""The keeper of one cluster's throttle: calls that Kafka executes after their answer was lost."""

import contextlib
from dataclasses import replace

import pytest
from tests.fakes.throttled_cluster import LATE_TICKS, ONE, TWO, Cluster, claim, sides

from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.reassignment_throttle import (
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
)
from kafka_rebalance.kafka.ports import ConfigOp


@pytest.fixture
def cluster():
    return Cluster()


class TestLateWrites:
    """A broker that hangs answers nothing, and executes its requests in order when it continues."""

    @pytest.fixture
    def hanging(self, cluster):
        """Requests that broker 1 has received but not executed; they precede any later request."""
        carry_out, waiting = cluster.kafka._apply, []

        def apply(where, operations):
            if where != ONE:
                return carry_out(where, operations)
            first, waiting[:] = not waiting, [*waiting, operations]
            if first and operations[0].op is ConfigOp.SET:
                return "_TIMED_OUT"
            for sent in waiting:
                carry_out(ONE, sent)
            waiting.clear()
            return None

        cluster.kafka._apply = apply
        cluster.goes_on = lambda: [carry_out(ONE, sent) for sent in waiting]
        return cluster

    def assert_undone(self, hanging):
        """The broker executes what it was sent; after that nothing of ours is set or on record."""
        hanging.goes_on()
        assert hanging.kafka.rates(ONE) == (None, None)
        assert hanging.keeper.ledger_empty

    @pytest.mark.parametrize("killed", [False, True])
    def test_what_reads_as_before_is_undone_all_the_same(self, hanging, killed):
        """The rate arrives after the claim has ended; an operator that started meanwhile saw no answer either."""
        hanging.tick(claim())
        assert hanging.kafka.rates(ONE) == (None, None)
        if killed:
            hanging.restart()
        hanging.ticks({}, count=LATE_TICKS)
        self.assert_undone(hanging)

    def test_a_rate_of_others_is_replaced(self, hanging):
        """Others set a rate, and an operator that starts reads it. Then the call of the one before is executed."""
        hanging.tick(claim())
        hanging.kafka.values |= {(ONE, LEADER_RATE): "7", (ONE, FOLLOWER_RATE): "7"}
        hanging.restart()
        hanging.tick({})
        assert hanging.kafka.rates(ONE) == ("7", "7")
        hanging.goes_on()
        hanging.ticks({}, count=LATE_TICKS)
        assert hanging.kafka.rates(ONE) == (None, None)
        assert hanging.keeper.ledger_empty

    def test_a_client_that_ends_before_it_has_the_answers(self, hanging, monkeypatch):
        """The call fails for all brokers together. The broker that hangs executes it after everything has ended."""
        hanging.ticks({}, count=LATE_TICKS)
        alter = hanging.kafka.alter_broker_configs

        async def end(changes):
            await alter(changes)
            raise Transient("KafkaUnreachable", "the process of the client has ended")

        with monkeypatch.context() as patched:
            patched.setattr(hanging.kafka, "alter_broker_configs", end)
            with pytest.raises(Transient):
                hanging.tick(claim())
        hanging.ticks({}, count=LATE_TICKS)
        hanging.goes_on()
        assert hanging.kafka.rates(ONE) == hanging.kafka.rates(TWO) == (None, None)
        assert hanging.keeper.ledger_empty

    def test_a_client_that_ends_again_and_again(self, hanging, monkeypatch):
        """No broker has answered since the start of the operator, so a call before it may still be executed."""

        async def end(*_):
            raise Transient("KafkaUnreachable", "the process of the client has ended")

        hanging.tick(claim())
        hanging.restart()
        with monkeypatch.context() as patched:
            patched.setattr(hanging.kafka, "broker_configs", end)
            for _ in range(LATE_TICKS):
                with pytest.raises(Transient):
                    hanging.tick({})
        hanging.ticks({}, count=LATE_TICKS)
        self.assert_undone(hanging)

    def test_a_hang_of_minutes(self, hanging):
        """Nothing that the broker was sent has taken effect while it hangs: it is undone when it answers again."""
        hanging.tick(claim())
        hanging.kafka.silent = {ONE}
        hanging.ticks({}, count=90)
        hanging.kafka.silent = set()
        hanging.ticks({}, count=40)
        self.assert_undone(hanging)

    def test_a_list_is_undone_although_it_reads_as_before(self, cluster):
        """The controller hangs with the append; everything ends, and then it carries it out."""
        cluster.kafka.hung = True
        with pytest.raises(Transient):
            cluster.tick(claim())
        for _ in range(30):
            with pytest.raises(Transient):
                cluster.tick({})
        assert not cluster.keeper.ledger_empty
        cluster.kafka.resume()
        cluster.ticks({})
        assert cluster.kafka.values == {}
        cluster.ticks({}, count=LATE_TICKS)
        assert cluster.keeper.ledger_empty

    def test_a_list_that_a_killed_operator_was_appending(self, cluster):
        """The one that starts then saw no answer either."""
        cluster.kafka.hung = True
        with pytest.raises(Transient):
            cluster.tick(claim())
        late, carry_out = cluster.kafka.pending, cluster.kafka._apply
        cluster.kafka.hung = False
        cluster.restart()

        def apply(where, operations):
            while where == "t" and late:
                carry_out("t", late.pop()["t"])
            return carry_out(where, operations)

        cluster.kafka._apply = apply
        cluster.ticks({}, count=LATE_TICKS)
        cluster.kafka.resume()
        assert cluster.kafka.values == {}
        assert cluster.keeper.ledger_empty

    def test_a_list_that_we_may_not_change_holds_nobody_up_for_long(self, cluster):
        """A refusal to append or to restore is an answer; half a minute after it nothing arrives any more."""
        carry_out = cluster.kafka._apply
        cluster.kafka._apply = lambda w, ops: "TOPIC_AUTHORIZATION_FAILED" if w == "t" else carry_out(w, ops)
        cluster.ticks(claim())
        cluster.ticks({}, count=20)
        assert cluster.keeper.ledger_empty

    def test_brokers_that_take_nothing_hold_nobody_up_for_long(self, cluster):
        """A rate that never arrived need not be undone: after half a minute it will not arrive any more."""
        cluster.kafka.refusing = {ONE}
        cluster.ticks(claim())
        cluster.ticks({})
        assert not cluster.keeper.ledger_empty
        cluster.now += 60
        cluster.ticks({})
        assert cluster.keeper.ledger_empty


class TestRemovals:
    """The controller carries out a removal of entries, and its answer does not arrive."""

    @pytest.fixture
    def silent(self, cluster, monkeypatch):
        """Answers to removals do not arrive in this context."""
        carry_out = cluster.kafka._apply

        def apply(where, operations):
            answer = carry_out(where, operations)
            return "_TIMED_OUT" if where == "t" else answer

        @contextlib.contextmanager
        def silence():
            with monkeypatch.context() as patched:
                patched.setattr(cluster.kafka, "_apply", apply)
                yield

        return silence

    @pytest.mark.parametrize("fewer", [{}, {"a": claim()["a"]}], ids=["all", "some"])
    def test_a_copy_waits_until_the_entries_are_listed_again(self, cluster, silent, fewer):
        """They are wanted again before a reading has shown that they are gone."""
        more = {"a": replace(claim()["a"], entries=sides({"0:1", "1:1"}, {"0:2", "1:2"}))}
        cluster.ticks(more)
        with silent():
            cluster.tick(fewer)
        assert "1:2" not in cluster.kafka.values.get(("t", FOLLOWER_LIST), "")
        cluster.tick(more)
        assert cluster.kafka.values["t", FOLLOWER_LIST] == "0:2,1:2"
        assert cluster.kafka.values["t", LEADER_LIST] == "0:1,1:1"
