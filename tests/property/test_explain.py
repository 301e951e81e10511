"""Every fact that an explanation states is true, recounted on any small cluster."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import given
from tests.property.explain_told import Told, by_topic, explainable
from tests.property.planning_judge import list_violations, rack_cap, target_racks

from kafka_rebalance.cli.explain import sentences as words
from kafka_rebalance.model.goals import Balance
from kafka_rebalance.planning import PlanRequest
from kafka_rebalance.planning.explain.accounts import Fit, Why, WhyLed


class TestBrokers:
    @given(explainable())
    def test_counts_and_shares(self, request_: PlanRequest) -> None:
        """Before, after, leaders, departures and arrivals add up; counts that are called balanced are balanced."""
        told = Told(request_)
        assert {a.broker for a in told.explained.brokers} == told.known | told.held.keys()
        for a in told.explained.brokers:
            b = a.broker
            assert (a.before, a.after, a.pinned) == (told.held[b], told.holds[b], told.pinned[b])
            assert (a.led_before, a.led_after) == (told.led[b], told.leads[b])
            assert a.before - sum(a.leaving.values()) + a.arriving == a.after
            assert a.arriving == sum(b in told.after[tp] and b not in told.before[tp] for tp in told.after)
            assert (a.known, a.target) == (b in told.known, b in request_.targets)
            if a.share is None:
                assert not a.target or told.pinned or request_.goals.balance is Balance.PER_TOPIC
                assert a.beyond == 0
                continue
            assert a.target
            told.check_share(a.share, b, told.full_holds)
            assert a.beyond == a.after - min(max(a.after, a.share.low), a.share.high)
            assert told.explained.cut_short or not a.beyond

    @given(explainable())
    def test_counts_without_a_share_are_as_even_as_can_be(self, request_: PlanRequest) -> None:
        """What the text says if pinned replicas prevent a share."""
        told = Told(request_)
        said = [line for line in words.of_plan(told.explained) if "are as even as pinned replicas" in line]
        shareless = [a.broker for a in told.explained.brokers if a.target and a.share is None]
        assert bool(said) == bool(shareless and request_.goals.balance is Balance.TOTAL)
        if said and len(told.before) > sum(p.pinned for p in request_.partitions):
            assert told.squares(told.full_holds) == told.fewest_squares()

    @given(explainable())
    def test_numbers_in_sentences(self, request_: PlanRequest) -> None:
        """The sentences contain the counts, cover every broker and partition, and are complete sentences."""
        told = Told(request_)
        lines = words.of_plan(told.explained)
        moves = told.made.replica_moves
        assert any(line.startswith(f"{moves} replica") for line in lines) == (told.made.reason == "")
        for a in told.explained.brokers:
            first, *rest = words.of_broker(told.explained, a)
            replicas = f"{told.held[a.broker]} replica{'' if told.held[a.broker] == 1 else 's'}"
            assert first.endswith(f"holds {replicas} and ends with {told.holds[a.broker]}.")
            left = [int(n) for line in rest for n in re.findall(r"^(\d+) of \d+ that leave", line)]
            assert sum(left) == sum(a.leaving.values())
            lines += [first, *rest]
        for p in request_.partitions:
            of_partition = words.of_partition(told.explained, told.explained.partition(p.tp))
            assert of_partition[0].startswith(f"{p.tp} ")
            lines += of_partition
        for line in lines:
            assert line.endswith(".")
            assert not re.search(r"\b1 (replicas|brokers|partitions|moves|copies|others|topics|leaders)\b", line)


class TestMoves:
    @given(explainable())
    def test_why_copies_leave(self, request_: PlanRequest) -> None:
        """Each reason's condition is met, no stronger one is, and every departing replica has a reason."""
        told = Told(request_)
        gone = {(tp, b) for tp in told.before for b in set(told.before[tp]) - set(told.after[tp])}
        assert {(d.tp, d.broker) for d in told.explained.departures} == gone
        assert len(told.explained.departures) == len(gone)
        fewer = Counter(d.tp for d in told.explained.departures if d.why is Why.FEWER_REPLICAS)
        assert all(n <= len(told.before[tp]) - len(told.after[tp]) for tp, n in fewer.items())
        for d in told.explained.departures:
            b = d.broker
            assert (d.why is Why.GONE) == (b not in told.known)
            assert (d.why is Why.NOT_TARGET) == (b in told.known - request_.targets)
            if d.why is Why.RACK_RULE:
                assert d.rack_held == told.crowd(told.before[d.tp], b) > d.rack_room
                assert told.crowd([x for x in told.after[d.tp] if x != b], b) < d.rack_held
                rack_size = told.crowd(sorted(request_.targets), b)
                assert d.rack_room == min(rack_cap(target_racks(request_), len(told.after[d.tp])), rack_size)
            assert d.why is not Why.SHARE or told.held[b] > told.holds[b]
            assert d.why is not Why.EXCHANGE or told.held[b] <= told.holds[b]

    @given(explainable())
    def test_where_copies_could_have_gone(self, request_: PlanRequest) -> None:
        """A broker that is called allowed could take a new replica without violating a rule; any other could not."""
        told = Told(request_)
        arrivals = Counter(b for tp in told.after for b in set(told.after[tp]) - set(told.before[tp]))
        for p in told.made.partitions:
            account = told.explained.partition(p.tp)
            assert set(account.fits) == (told.known if p.added else set())
            for b, fit in account.fits.items():
                assert (fit is Fit.NOT_TARGET) == (b not in request_.targets)
                assert (fit is Fit.CHOSEN) == (b in p.added)
                if fit in {Fit.NOT_TARGET, Fit.HELD, Fit.CHOSEN}:
                    continue
                assert b not in p.current
                instead = [tuple(b if x == new else x for x in p.target) for new in p.added]
                fine = [row for row in instead if told.crowd(row, b) <= max(1, _room(told, p, b))]
                assert bool(fine) == (fit is not Fit.RACK_FULL)
                if fine:
                    assert min(list_violations(request_, row) for row in instead) <= list_violations(request_, p.target)
                    assert (fit is Fit.GETS_OTHERS) == (arrivals[b] > 0 and fit is not Fit.TOPIC_FULL)

    @given(explainable())
    def test_why_leaders_change(self, request_: PlanRequest) -> None:
        """The former leader is gone, must not hold replicas, leads too many, or gets another leadership instead."""
        told = Told(request_)
        for tp in told.before:
            former, new = told.before[tp][0], told.after[tp][0]
            why = told.explained.partition(tp).led
            assert (why is None) == (former == new)
            if why is not None:
                assert (why is WhyLed.COPY_LEAVES) == (former not in told.after[tp])
                assert (why is WhyLed.NOT_TARGET) == (former in set(told.after[tp]) - request_.targets)
                assert why is not WhyLed.SHARE or told.led[former] > told.leads[former]
                assert why is not WhyLed.EXCHANGE or told.led[former] <= told.leads[former]


class TestTopics:
    @given(explainable())
    def test_shares(self, request_: PlanRequest) -> None:
        """A topic has shares if it is as balanced as it could be alone; each broker ends with its share."""
        told = Told(request_)
        topics = told.explained.topics
        assert (topics is None) == (request_.goals.balance is Balance.TOTAL)
        if topics is None:
            return
        giving_way = 0
        for topic in {tp.topic for tp in told.before}:
            before, after, at_full = (told.of_topic(rows, topic) for rows in (told.before, told.after, told.at_full))
            even = told.squares(at_full) == told.fewest_squares(topic)
            assert even or request_.goals.balance is Balance.BOTH
            giving_way += not even
            for b in told.known | told.held.keys():
                account = topics.account(topic, b)
                assert (account.before, account.after) == (before[b], after[b])
                assert (account.share is not None) == (even and b in request_.targets)
                if account.share is not None:
                    told.check_share(account.share, b, at_full)
        found = topics.evenness
        assert found.giving_way == giving_way
        assert found.over_all + found.in_racks + found.giving_way == len({tp.topic for tp in told.before})

    @given(explainable())
    def test_how_many_are_outside(self, request_: PlanRequest) -> None:
        """For how many topics a broker, and any broker, holds less or more than its share."""
        told = Told(request_)
        topics = told.explained.topics
        if topics is None:
            assert all(a.topics is None for a in told.explained.brokers)
            return
        anywhere: tuple[set[str], set[str]] = (set(), set())
        for a in told.explained.brokers:
            here: tuple[set[str], set[str]] = (set(), set())
            for topic in {tp.topic for tp in told.before}:
                share = topics.account(topic, a.broker).share
                for outside, rows in zip(here, (told.before, told.after), strict=True):
                    held = told.of_topic(rows, topic)[a.broker]
                    outside |= {topic} if share and not share.low <= held <= share.high else set()
            assert (a.topics is not None) == a.target
            if a.topics is not None:
                assert (a.topics.before, a.topics.after) == (len(here[0]), len(here[1]))
                assert told.explained.cut_short or not a.topics.after
            anywhere = (anywhere[0] | here[0], anywhere[1] | here[1])
        assert (topics.outside_anywhere.before, topics.outside_anywhere.after) == tuple(map(len, anywhere))

    @given(explainable())
    def test_why_copies_leave(self, request_: PlanRequest) -> None:
        """A broker described as above a topic's share is above it; after an exchange it holds no fewer of the topic."""
        told = Told(request_)
        for d in told.explained.departures:
            if d.why not in {Why.TOPIC_SHARE, Why.TOPIC_EXCHANGE}:
                continue
            assert told.explained.topics is not None
            share = told.explained.topics.account(d.tp.topic, d.broker).share
            assert share is not None
            before, after = (told.of_topic(rows, d.tp.topic)[d.broker] for rows in (told.before, told.after))
            if d.why is Why.TOPIC_EXCHANGE:
                assert before <= after
                continue
            at_full = told.of_topic(told.at_full, d.tp.topic)
            shares = [at_full[b] for b in told.alike(share, d.broker)]
            assert before > after
            assert before > min(shares)
            lines = words.of_partition(told.explained, told.explained.partition(d.tp))
            line = next(line for line in lines if line.startswith(f"The replica on broker {d.broker} leaves: "))
            assert ("above its share" in line) == (before > max(shares))
            if "above its share" not in line:
                few = f"only {shares.count(before)} of {len(shares)} brokers can have {before}."
                assert line.endswith(few)
                assert before == max(shares)

    @given(by_topic())
    def test_nothing_but_topics_moves_copies_per_topic(self, request_: PlanRequest) -> None:
        """Without a budget every move of PerTopic is forced, or serves a topic's share or an exchange within it."""
        told = Told(request_)
        if request_.goals.balance is Balance.PER_TOPIC:
            assert not {d.why for d in told.explained.departures} & {Why.SHARE, Why.EXCHANGE}

    @given(explainable())
    def test_where_a_share_is_full(self, request_: PlanRequest) -> None:
        """A broker described as having its share of a topic would hold more than any broker's share with one more."""
        told = Told(request_)
        for p in told.made.partitions:
            for b, fit in told.explained.partition(p.tp).fits.items():
                if fit not in {Fit.TOPIC_FULL, Fit.GETS_NOTHING, Fit.GETS_OTHERS}:
                    continue
                share = told.explained.topics.account(p.tp.topic, b).share if told.explained.topics else None
                if share is None:
                    assert fit is not Fit.TOPIC_FULL
                    continue
                at_full = told.of_topic(told.at_full, p.tp.topic)
                most = max(at_full[x] for x in told.alike(share, b))
                assert (fit is Fit.TOPIC_FULL) == (told.of_topic(told.after, p.tp.topic)[b] + 1 > most)


def _room(told: Told, p, broker):
    racks = target_racks(told.request)
    if racks[broker] is None:
        return len(p.target)
    return min(rack_cap(racks, len(p.target)), sum(rack == racks[broker] for rack in racks.values()))
