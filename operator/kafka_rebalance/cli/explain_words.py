"""The facts of an explanation as sentences for people. Says nothing that is not in the facts; decides nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kafka_rebalance.model.topology import BrokerId, Replicas
from kafka_rebalance.planning import Strategy
from kafka_rebalance.planning.explain import (
    BrokerAccount,
    Departure,
    Explanation,
    Fit,
    PartitionAccount,
    Share,
    Why,
    WhyLed,
)

_MOST_NAMED = 12

_BASIS = {
    Strategy.MINIMAL_MOVEMENT: "of all placements with counts as even, one that moves the fewest replicas is taken",
    Strategy.FORCED_MOVES_ONLY: "only what breaks a rule is moved; counts are not evened out",
    Strategy.GENERATE: "everything is placed from scratch, as Kafka's --generate does: what is there does not count",
    Strategy.ASSIGNMENT: "the assignment was given; nothing was chosen here",
    Strategy.PREFERRED_LEADERS: "leaders are evened out and no replica is moved",
}

_WHY = {
    Why.GONE: "the broker is not in the cluster",
    Why.NOT_TARGET: "the broker shall hold nothing: it is decommissioned, or not among those to be used",
    Why.ASSIGNED: "the assignment does not have it",
    Why.FEWER_REPLICAS: "the partition shall have fewer replicas",
    Why.RACK_RULE: "the rack holds more copies of the partition than the rack rule allows",
    Why.SHARE: "the broker ends with fewer replicas than it has",
    Why.EXCHANGE: "exchanged: the broker gives it, and gets as many others as it gives, or more",
}


def of_plan(explained: Explanation) -> list[str]:
    """Why the plan is what it is, as a whole."""
    made, request = explained.plan, explained.request
    replicas = sum(account.before for account in explained.brokers)
    asked = f"{len(explained.planned)} partitions with {replicas} replicas, to be on {len(request.targets)} brokers"
    lines = [f"{asked}: {_BASIS[request.strategy]}."]
    lines += _shares(explained)
    lines += _leaving(Counter(departure.why for departure in explained.departures))
    if not made.partitions:
        lines.append("Nothing moves: no list has to change.")
    lines.append(_certificate(explained))
    if made.partitions:
        led = Counter(explained.led(p) for p in made.partitions if p.leader_moves)
        lines.append(f"{made.leader_moves} preferred leaders change{_led_counts(led)}; they copy no data by that.")
        lines.append(_evenness(explained.brokers))
    if made.rack_violations:
        lines.append(f"Beyond the rack rule at the end: {made.rack_violations} replicas.")
    lines += [f"{count} partitions were left alone: {reason}." for reason, count in _reasons(explained)]
    return lines


def of_broker(explained: Explanation, account: BrokerAccount) -> list[str]:
    """What a broker gives and gets, and why."""
    b = account.broker
    where = f"Broker {b}" + (f" (rack {account.rack})" if account.rack is not None else "")
    lines = [f"{where} holds {account.before} replicas and ends with {account.after}."]
    if not account.known:
        lines.append("It is not in the cluster: everything on it has to leave.")
    elif not account.target:
        lines.append("It shall hold nothing: decommissioned, or not among the brokers to be used.")
    elif account.share:
        lines.append(_share(account.share))
    else:
        lines.append(f"Counts around it are not evened out: {_BASIS[explained.request.strategy]}.")
    left = sum(account.leaving.values())
    lines.append(f"Copies that leave: {left}, that arrive: {account.arriving}.")
    lines += _leaving(account.leaving)
    lines.append(f"It is the preferred leader of {account.led_before} partitions and ends with {account.led_after}.")
    return lines


def of_partition(explained: Explanation, account: PartitionAccount) -> list[str]:
    """Why a partition gets the list it gets."""
    if account.skipped:
        return [f"{account.tp} was not planned: {account.skipped}."]
    lines = [f"{account.tp} has replicas {_ids(account.current)} and gets {_ids(account.target)}."]
    if account.pinned:
        lines.append("It is pinned: it stays as it is, and the others are balanced around it.")
    if account.current == account.target:
        return [f"{account.tp} stays on {_ids(account.target)}.", *lines[1:], *_staying(explained, account)]
    lines += [_departure(explained, departure) for departure in account.leaving]
    lines += [_arrival(explained, b) for b in account.arriving]
    lines += _others(account)
    if account.led:
        lines.append(_leader(explained, account, account.led))
    elif account.current[1:] != account.target[1:] and not account.leaving and not account.arriving:
        lines.append(f"Only the order of its followers changes; {account.target[0]} stays its preferred leader.")
    return lines


def _shares(explained: Explanation) -> list[str]:
    found = {account.share: None for account in explained.brokers if account.share is not None}
    uneven = [account.broker for account in explained.brokers if account.target and account.share is None]
    lines = [_share(share) for share in found]
    if uneven:
        lines.append(f"Counts are not evened out around brokers {_few(uneven)}.")
    return lines


def _share(share: Share) -> str:
    """An even count, whichever the brokers are."""
    each = f"{share.low}" if share.low == share.high else f"{share.low} or {share.high}"
    if share.everyone:
        return f"Fair share: {share.replicas} replicas over {share.brokers} brokers are {each} for each."
    return (
        f"Even {f'in rack {share.rack}' if share.rack is not None else 'among brokers without a rack'}, not over all: "
        f"{share.replicas} replicas at the end, over {share.brokers} brokers, are {each} for each."
    )


def _certificate(explained: Explanation) -> str:
    made = explained.plan
    if explained.request.strategy in {Strategy.ASSIGNMENT, Strategy.GENERATE}:
        return f"{made.replica_moves} replicas move."
    if made.optimal:
        return f"{made.replica_moves} replicas move. Proved: no plan that meets the same goals moves fewer."
    over = made.replica_moves - made.lower_bound
    return (
        f"{made.replica_moves} replicas move. Proved: no plan that meets the same goals moves fewer than "
        f"{made.lower_bound}; whether the other {over} are needed was not decided."
    )


def _led_counts(led: Mapping[WhyLed, int]) -> str:
    said = {
        WhyLed.COPY_LEAVES: "because the leader's copy leaves",
        WhyLed.SHARE: "because the leader ends with fewer",
        WhyLed.EXCHANGE: "in exchange for others",
    }
    return ": " + ", ".join(f"{led[why]} {said[why]}" for why in WhyLed if led.get(why)) if led else ""


def _evenness(accounts: Iterable[BrokerAccount]) -> str:
    targets = [account for account in accounts if account.target]
    before, after = [a.led_before for a in targets], [a.led_after for a in targets]
    return f"Partitions led by a broker: {min(before)} to {max(before)} before, {min(after)} to {max(after)} after."


def _reasons(explained: Explanation) -> list[tuple[str, int]]:
    return sorted(Counter(skipped.reason for skipped in explained.plan.skipped).items())


def _staying(explained: Explanation, account: PartitionAccount) -> list[str]:
    """Why nothing moves, broker by broker."""
    lines = []
    for b in account.current:
        of = explained.broker(b)
        left = sum(of.leaving.values())
        if not of.known or not of.target:
            lines.append(f"Broker {b} keeps it, although it shall hold nothing.")
        elif left:
            lines.append(f"Broker {b} gives {left} of its {of.before} copies, others than this one.")
        else:
            lines.append(f"Broker {b} gives nothing: it holds {of.before} and ends with {of.after}.")
    return lines


def _departure(explained: Explanation, departure: Departure) -> str:
    b, account = departure.broker, explained.broker(departure.broker)
    counts = f"it holds {account.before} and ends with {account.after}"
    reasons = _WHY | {
        Why.RACK_RULE: f"rack {account.rack} holds {departure.rack_held} of its copies, and the rack rule allows "
        f"{departure.rack_room}",
        Why.SHARE: counts,
        Why.EXCHANGE: f"exchanged, {counts}: it gets {account.arriving} others",
    }
    return f"The copy on broker {b} leaves: {reasons[departure.why]}."


def _arrival(explained: Explanation, broker: BrokerId) -> str:
    account = explained.broker(broker)
    return (
        f"A copy arrives at broker {broker}: it holds {account.before}, ends with {account.after} and gets "
        f"{account.arriving}, of which this is one."
    )


def _others(account: PartitionAccount) -> list[str]:
    """Why not elsewhere."""
    said = {
        Fit.GETS_OTHERS: "allowed as well, and gets copies of other partitions",
        Fit.GETS_NOTHING: "allowed as well, and gets no copy of anything",
        Fit.RACK_FULL: "its rack would have more copies than the rack rule allows",
        Fit.NOT_TARGET: "shall hold nothing",
    }
    brokers = {fit: [b for b, found in account.fits.items() if found is fit] for fit in said}
    return [f"Not chosen, {said[fit]}: {_few(found)}." for fit, found in brokers.items() if found]


def _leader(explained: Explanation, account: PartitionAccount, why: WhyLed) -> str:
    former, new = (explained.broker(replicas[0]) for replicas in (account.current, account.target))
    reasons = {
        WhyLed.COPY_LEAVES: f"the copy on {former.broker} leaves",
        WhyLed.SHARE: f"{former.broker} leads {former.led_before} and ends with {former.led_after}",
        WhyLed.EXCHANGE: f"{former.broker} gives this one and gets another (it leads {former.led_before} and ends with "
        f"{former.led_after})",
    }
    return (
        f"The preferred leader changes from {former.broker} to {new.broker}, which leads {new.led_before} and ends "
        f"with {new.led_after}: {reasons[why]}."
    )


def _leaving(why: Mapping[Why, int]) -> list[str]:
    total = sum(why.values())
    return [f"{why[reason]} of {total} that leave: {_WHY[reason]}." for reason in Why if why.get(reason)]


def _few(brokers: list[BrokerId]) -> str:
    more = f" and {len(brokers) - _MOST_NAMED} more" if len(brokers) > _MOST_NAMED else ""
    return ", ".join(map(str, brokers[:_MOST_NAMED])) + more


def _ids(replicas: Replicas) -> str:
    return ",".join(map(str, replicas))
