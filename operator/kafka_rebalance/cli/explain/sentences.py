"""The facts of an explanation as sentences. Nothing is decided here."""

from collections import Counter
from collections.abc import Iterable, Mapping

from kafka_rebalance.cli.explain import limit_sentences as limits
from kafka_rebalance.cli.explain import share_sentences as shares
from kafka_rebalance.cli.tables.phrases import counted, few, ids
from kafka_rebalance.model.goals import Balance, Strategy
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.planning import PlanRequest
from kafka_rebalance.planning.explain.accounts import BrokerAccount, Departure, Fit, PartitionAccount, Why, WhyLed
from kafka_rebalance.planning.explain.explanation import Explanation
from kafka_rebalance.reasons import Reason

_BASIS = {
    Strategy.FORCED_MOVES_ONLY: "only replicas that break a rule move; counts are not balanced",
    Strategy.GENERATE: "all replicas are placed from scratch, as by Kafka's --generate; the current "
    "assignment does not count",
    Strategy.ASSIGNMENT: "the given assignment is the target",
    Strategy.PREFERRED_LEADERS: "leaders are balanced and no replica moves",
    Strategy.LOG_DIRS: "no replica leaves its broker, and only its log dir may change",
}

_EVEN = {
    Balance.TOTAL: "counts",
    Balance.PER_TOPIC: "the counts of each topic",
    Balance.BOTH: "counts, and then those of each topic,",
}

WHY = {
    Why.GONE: "the broker is not in the cluster",
    Why.NOT_TARGET: "the broker must not hold replicas: it is decommissioned, or not in the list of brokers",
    Why.ASSIGNED: "the assignment does not include it",
    Why.FEWER_REPLICAS: "the partition gets fewer replicas",
    Why.RACK_RULE: "the rack holds more replicas of the partition than the rack rule allows",
    Why.TOPIC_SHARE: "the broker holds more of the topic than the lower end of its share, and ends with fewer",
    Why.TOPIC_EXCHANGE: "exchanged: the broker gets at least as many other replicas of the topic as it gives",
    Why.SHARE: "the broker ends with fewer replicas than it has",
    Why.EXCHANGE: "exchanged: the broker gets at least as many other replicas as it gives",
}
"""Why a replica leaves a broker."""


def of_plan(explained: Explanation, *, log_dirs_move: bool = False) -> list[str]:
    """Explains the whole plan. ``log_dirs_move``: replicas move between log dirs, so the plan is not empty."""
    made, request = explained.plan, explained.request
    replicas = counted(sum(account.before for account in explained.brokers), "replica")
    partitions, brokers = counted(len(explained.planned), "partition"), counted(len(request.targets), "broker")
    lines = [f"{partitions} with {replicas}, to be placed on {brokers}: {_basis(explained)}."]
    lines += shares.of_plan(explained)
    lines += limits.of_plan(explained)
    lines += _leaving(Counter(departure.why for departure in explained.departures))
    if made.reason != Reason.GAIN_TOO_SMALL:
        nothing = "No replica moves to another broker." if log_dirs_move else "Nothing moves: the plan is empty."
        lines += [] if made.partitions else [nothing]
        lines.append(_certificate(explained))
    if made.partitions:
        led = Counter(explained.led(p) for p in made.partitions if p.leader_moves)
        change = counted(made.leader_moves, "preferred leader changes", "preferred leaders change")
        lines.append(f"{change}{_led_counts(led)}; that copies no data.")
        lines.append(_evenness(explained.brokers))
    if made.rack_violations:
        lines.append(f"Replicas that violate the rack rule at the end: {counted(made.rack_violations, 'replica')}.")
    return lines + [
        f"{counted(count, 'partition was', 'partitions were')} skipped: {reason}."
        for reason, count in sorted(Counter(skipped.reason for skipped in made.skipped).items())
    ]


def of_broker(explained: Explanation, account: BrokerAccount) -> list[str]:
    """Explains what a broker gives and gets."""
    b = account.broker
    where = f"Broker {b}" + (f" (rack {account.rack})" if account.rack is not None else "")
    lines = [f"{where} holds {counted(account.before, 'replica')} and ends with {account.after}."]
    if not account.known:
        lines.append("It is not in the cluster: all its replicas leave.")
    elif not account.target:
        lines.append("It must not hold replicas: it is decommissioned, or not in the list of brokers.")
    else:
        lines += shares.of_broker(explained, account)
    lines += limits.of_broker(explained, account)
    left = sum(account.leaving.values())
    lines.append(f"Replicas that leave: {left}, that arrive: {account.arriving}.")
    lines += _leaving(account.leaving)
    led = counted(account.led_before, "partition")
    lines.append(f"It is the preferred leader of {led} and ends with {account.led_after}.")
    return lines


def of_partition(explained: Explanation, account: PartitionAccount) -> list[str]:
    """Explains the target of a partition."""
    if account.pinned:
        where = f"{account.tp} is pinned: it stays on {ids(account.target)}"
        return [f"{where}, and the other partitions are balanced around it."]
    if account.skipped:
        return [f"{account.tp} was not planned: {account.skipped}."]
    without = limits.of_partition(explained, account)
    if account.current == account.target:
        return [f"{account.tp} stays on {ids(account.target)}.", *_staying(explained, account), *without]
    lines = [f"{account.tp} has replicas {ids(account.current)} and gets {ids(account.target)}."]
    lines += [_departure(explained, departure) for departure in account.leaving]
    lines += [_arrival(explained, account, b) for b in account.arriving]
    lines += _others(account)
    if account.led:
        lines.append(_leader(explained, account, account.led))
    elif account.current[1:] != account.target[1:] and not account.leaving and not account.arriving:
        lines.append(f"Only the order of its followers changes; {account.target[0]} stays its preferred leader.")
    return lines + without


def of_curve(request: PlanRequest, unknown_sizes: int) -> list[str]:
    """The limits of the curve: what it ignores and what is not proven. ``unknown_sizes`` counts partitions."""
    goals = request.goals
    limit = "movement budget" if goals.limited else "minimum gain" if goals.minimum_gain else ""
    lines = [f"The curve ignores the {limit} and ends at full balance."] if limit else []
    if goals.balance is Balance.PER_TOPIC:
        lines.append(
            "Its squares are sums over the counts of each topic. Totals have the lowest priority and may "
            "become less even."
        )
    if goals.balance is not Balance.TOTAL:
        lines.append(
            "Its points before the last take the most useful moves of the plan; whether other moves gain "
            "more is not proven."
        )
    if unknown_sizes:
        lines.append(f"Its data does not include {counted(unknown_sizes, 'partition')} of unknown size.")
    return lines


def _basis(explained: Explanation) -> str:
    request = explained.request
    if request.strategy is not Strategy.MINIMAL_MOVEMENT:
        return _BASIS[request.strategy]
    if not request.goals.counts:
        part = "part of " if explained.budget_reached else ""
        forced = f"the plan makes {part}the forced moves, and brings brokers into the bands of goals.load for few bytes"
        return f"{forced}; counts are free"
    even = f"with {_EVEN[request.goals.balance]} as even as possible"
    if not explained.budget_reached:
        if request.goals.load:
            return f"the plan is an assignment {even} that brings brokers into the bands of goals.load for few bytes"
        return f"the plan is the assignment {even} that moves the fewest replicas"
    if request.goals.balance is Balance.TOTAL:
        return "the plan is the most even assignment within the movement budget"
    return f"the plan takes the most useful moves towards an assignment {even}, within the movement budget"


def _certificate(explained: Explanation) -> str:
    made = explained.plan
    moves = counted(made.replica_moves, "replica moves", "replicas move")
    if explained.request.strategy in {Strategy.ASSIGNMENT, Strategy.GENERATE}:
        return f"{moves}."
    goals = "the same goals" if made.imbalance is None else "the goals to the same extent"
    over = made.replica_moves - made.certificate.lower_bound
    if made.certificate.optimal or (made.imbalance is not None and not over):
        return f"{moves}. Proven: no plan that meets {goals} moves fewer."
    if not made.certificate.lower_bound:
        return f"{moves}. Whether fewer are possible is not proven."
    return (
        f"{moves}. Proven: no plan that meets {goals} moves fewer than {made.certificate.lower_bound}; "
        f"whether the other {over} {'is' if over == 1 else 'are'} needed is not proven."
    )


def _led_counts(led: Mapping[WhyLed, int]) -> str:
    said = {
        WhyLed.COPY_LEAVES: "because the replica of the leader leaves",
        WhyLed.NOT_TARGET: "because the leader must not hold replicas",
        WhyLed.SHARE: "because the leader ends with fewer",
        WhyLed.EXCHANGE: "in exchange for others",
    }
    return ": " + ", ".join(f"{led[why]} {said[why]}" for why in WhyLed if led.get(why)) if led else ""


def _evenness(accounts: Iterable[BrokerAccount]) -> str:
    targets = [account for account in accounts if account.target]
    before, after = [a.led_before for a in targets], [a.led_after for a in targets]
    return f"Preferred leaders per broker: {min(before)} to {max(before)} before, {min(after)} to {max(after)} after."


def _staying(explained: Explanation, account: PartitionAccount) -> list[str]:
    """Why the partition stays, broker by broker."""
    lines = []
    for b in account.current:
        of = explained.broker(b)
        left = sum(of.leaving.values())
        if not of.known or not of.target:
            lines.append(f"Broker {b} keeps it, although it must not hold replicas.")
            continue
        if left:
            gives = f"gives {left} of its {counted(of.before, 'replica')}, not this one"
        else:
            gives = f"gives nothing: it holds {of.before} and ends with {of.after}"
        lines.append(f"Broker {b} {gives}{_of_topic(explained, account, b)}.")
    return lines


def _departure(explained: Explanation, departure: Departure) -> str:
    b, account = departure.broker, explained.broker(departure.broker)
    counts = f"it holds {account.before} and ends with {account.after}"
    others = counted(account.arriving, "other")
    reasons = WHY | {
        Why.RACK_RULE: f"rack {account.rack} holds {departure.rack_held} of its replicas, and the rack rule allows "
        f"{departure.rack_room}",
        Why.SHARE: counts,
        Why.EXCHANGE: f"exchanged, {counts}: it gets {others}",
    }
    of = explained.topics.account(departure.tp.topic, b) if explained.topics else None
    if of and of.share:
        reasons[Why.TOPIC_SHARE] = shares.over(of, of.share)
        reasons[Why.TOPIC_EXCHANGE] = f"exchanged within its topic: it holds {shares.of_topic(of)}"
    return f"The replica on broker {b} leaves: {reasons[departure.why]}."


def _arrival(explained: Explanation, account: PartitionAccount, broker: BrokerId) -> str:
    of = explained.broker(broker)
    return (
        f"A replica arrives at broker {broker}: it holds {of.before}, gets "
        f"{of.arriving} including this one, and ends with {of.after}{_of_topic(explained, account, broker)}."
    )


def _of_topic(explained: Explanation, account: PartitionAccount, broker: BrokerId) -> str:
    """What a target broker holds of the topic, if topics are balanced."""
    if explained.topics is None:
        return ""
    return f"; {shares.of_topic(explained.topics.account(account.tp.topic, broker))}"


def _others(account: PartitionAccount) -> list[str]:
    """Why no other broker was chosen."""
    said = {
        Fit.GETS_OTHERS: "also allowed; gets replicas of other partitions",
        Fit.GETS_NOTHING: "also allowed; gets no replicas",
        Fit.TOPIC_FULL: "already has its share of the topic",
        Fit.RACK_FULL: "its rack would hold more replicas than the rack rule allows",
        Fit.NOT_TARGET: "must not hold replicas",
    }
    brokers = {fit: [b for b, found in account.fits.items() if found is fit] for fit in said}
    return [f"Not chosen: {few(found)} ({said[fit]})." for fit, found in brokers.items() if found]


def _leader(explained: Explanation, account: PartitionAccount, why: WhyLed) -> str:
    former, new = (explained.broker(replicas[0]) for replicas in (account.current, account.target))
    reasons = {
        WhyLed.COPY_LEAVES: f"the replica on {former.broker} leaves",
        WhyLed.NOT_TARGET: f"{former.broker} must not hold replicas",
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
    return [f"{why[reason]} of {total} that leave: {WHY[reason]}." for reason in Why if why.get(reason)]
