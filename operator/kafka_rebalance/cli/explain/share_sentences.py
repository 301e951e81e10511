"""Sentences about the fair shares of brokers, in total and per topic."""

from kafka_rebalance.cli.tables.phrases import counted, few
from kafka_rebalance.model.goals import Strategy
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.planning.explain.accounts import BrokerAccount, Share, TopicAccount
from kafka_rebalance.planning.explain.explanation import Explanation
from kafka_rebalance.planning.explain.topic_evenness import TopicCounts


def each(share: Share) -> str:
    """The share of each broker."""
    return f"{share.low}" if share.low == share.high else f"{share.low} or {share.high}"


def share(found: Share) -> str:
    """A share, and which brokers have it."""
    replicas, brokers = counted(found.replicas, "replica"), counted(found.brokers, "broker")
    verb = "is" if found.replicas == 1 else "are"
    if found.everyone:
        line = f"Fair share: {replicas} over {brokers} {verb} {each(found)} for each"
    else:
        where = f"in rack {found.rack}" if found.rack is not None else "among brokers without a rack"
        line = f"Even {where}, not over all: {replicas} at the end, over {brokers}, {verb} {each(found)} for each"
    if not found.pinned_full:
        return f"{line}."
    more = f"{counted(found.pinned_full, 'further broker has', 'further brokers have')} only pinned replicas"
    return f"{line}; {more}, at least as many."


def of_plan(explained: Explanation) -> list[str]:
    """All shares that there are, and the brokers without one."""
    lines = [_evenness(explained.topics)] if explained.topics else []
    found = {account.share: None for account in explained.brokers if account.share is not None}
    without = [account.broker for account in explained.brokers if account.target and account.share is None]
    lines += [share(one) for one in found]
    if without and not explained.topics:
        lines.append(f"{_uneven(explained, without)}.")
    return lines


def of_broker(explained: Explanation, account: BrokerAccount) -> list[str]:
    """The share of a target broker, and for how many topics it is outside its share."""
    lines = []
    if account.share:
        lines.append(share(account.share))
    elif explained.topics is None:
        lines.append(f"{_uneven(explained, [account.broker])}.")
    if account.topics is not None:
        counts = f"{account.topics.before} before, {account.topics.after} at the end"
        lines.append(f"Topics where it is outside its share: {counts}.")
    return lines


def of_topic(account: TopicAccount) -> str:
    """What a target broker holds of a topic, and its share."""
    held = f"{counted(account.before, 'replica')} of topic {account.topic} before and {account.after} at the end"
    if account.share is None:
        return f"{held}; balancing the totals takes precedence"
    rack = "" if account.share.everyone else " in its rack" if account.share.rack is not None else " without a rack"
    over = f"{account.share.replicas} over {counted(account.share.brokers, 'broker')}{rack}"
    return f"{held}; its share is {each(account.share)} ({over})"


def over(account: TopicAccount, found: Share) -> str:
    """How a broker holds more of a topic than the lower end of its share ``found``."""
    held = f"{counted(account.before, 'replica')} of topic {account.topic}"
    if account.before > found.high:
        return f"it holds {held}, above its share of {each(found)}, and ends with {account.after}"
    limit = f"only {found.at_high} of {counted(found.brokers, 'broker')} can have {found.high}"
    return f"it holds {held} and ends with {account.after}: its share is {each(found)}, and {limit}"


def _uneven(explained: Explanation, brokers: list[BrokerId]) -> str:
    whose = f"around {'broker' if len(brokers) == 1 else 'brokers'} {few(brokers)}"
    if explained.request.strategy is Strategy.MINIMAL_MOVEMENT and explained.request.goals.counts:
        return f"Counts {whose} are as even as pinned replicas and the rack rule allow"
    return f"Counts {whose} are not balanced"


def _evenness(topics: TopicCounts) -> str:
    found, outside = topics.evenness, topics.outside_anywhere
    said = {
        "over all brokers": found.over_all,
        "within racks only, because of the rack rule": found.in_racks,
        "less even, because totals take precedence": found.giving_way,
    }
    even = "; ".join(f"{counted(number, 'topic')} {how}" for how, number in said.items() if number)
    return (
        f"Shares are per topic. Balanced at full balance: {even or 'no topic'}. Topics with a broker "
        f"outside its share: {outside.before} before, {outside.after} at the end."
    )
