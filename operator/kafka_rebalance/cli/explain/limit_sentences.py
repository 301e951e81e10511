"""What keeps a plan from full balance, as sentences: a movement budget, a minimum gain, pinned topics."""

from __future__ import annotations

from kafka_rebalance.cli.tables.phrases import counted, few, listed
from kafka_rebalance.model.goals import Balance
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.planning import Goals
from kafka_rebalance.planning.explain.accounts import BrokerAccount, PartitionAccount
from kafka_rebalance.planning.explain.explanation import Explanation
from kafka_rebalance.planning.gain import Gain
from kafka_rebalance.reasons import Reason
from kafka_rebalance.units import format_bytes


def of_plan(explained: Explanation) -> list[str]:
    """What was asked for, what it left, and which brokers are not where full balance has them."""
    lines = [*_pinned(explained), *_budget(explained), *_gain(explained)]
    if explained.cut_short:
        lines.append(f"Shares are those of the plan without the {_limit(explained)}.")
        lines += _outside(explained)
    return lines


def of_broker(explained: Explanation, account: BrokerAccount) -> list[str]:
    """Why a broker ends outside its share, or holds something that it shall not."""
    lines = []
    if account.pinned:
        pinned = counted(account.pinned, "replica on it is pinned: it stays", "replicas on it are pinned: they stay")
        counts = f", and {'counts' if account.pinned == 1 else 'count'} in the shares" if account.target else ""
        lines.append(f"{pinned}{counts}.")
    if not explained.cut_short:
        return lines
    if account.beyond:
        lines.append(f"It ends with {_beyond(account.beyond)} its share: {_why_short(explained)}.")
    if left := _left_behind(account):
        stay = counted(left, "replica stays", "replicas stay")
        lines.append(f"{stay} on it: {_why_short(explained)}.")
    return lines


def of_partition(explained: Explanation, account: PartitionAccount) -> list[str]:
    """What a partition would have without the limit."""
    if not explained.cut_short:
        return []
    without = f"the plan without the {_limit(explained)}"
    if set(account.whole) == set(account.target):
        return [f"On the same brokers in {without}."]
    whole = ",".join(map(str, account.whole))
    return [f"Not carried out: {without} has it on {whole}; {_why_short(explained)}."]


def _pinned(explained: Explanation) -> list[str]:
    pinned = [p for p in explained.planned if p.pinned]
    if not pinned:
        return []
    replicas = sum(len(p.replicas) for p in pinned)
    stuck = sum(b not in explained.request.targets for p in pinned for b in p.replicas)
    what = f"{counted(len(pinned), 'partition')} with {counted(replicas, 'replica')}"
    around = "What is pinned stays as it is, the others are planned around it, and shares count it."
    lines = [f"Pinned: {what}. {around}"]
    if stuck:
        stay = "stays" if stuck == 1 else "stay"
        lines.append(f"{stuck} of these replicas {stay} on brokers that shall hold nothing, outside any share.")
    return lines


def _budget(explained: Explanation) -> list[str]:
    goals, made = explained.request.goals, explained.plan
    if not goals.limited:
        return []
    if not explained.budget_reached:
        return [f"The movement budget of {_allowed(goals)} is not reached, and changes nothing."]
    if made.imbalance is None:
        spent = f"what it buys takes {_cost(explained.judged, goals)} and gains too little"
        return [f"The movement budget is reached: {_beyond_budget(explained)}; {spent}."]
    lines = [f"The movement budget is reached: {_why_short(explained)}. This plan takes {_cost(made, goals)}."]
    if made.before and made.after:
        lines.append(
            f"It leaves {made.after.fewest} to {counted(made.after.most, 'replica')} on a target broker; before it is "
            f"{made.before.fewest} to {made.before.most}, at full balance {_most(explained)}."
        )
    topical = goals.balance is Balance.PER_TOPIC
    whose = "target brokers' counts of each topic that may move" if topical else "target brokers' counts"
    squares = f"The squares of {whose} sum up to {made.imbalance.squares}"
    if made.certificate.optimal:
        return [*lines, f"{squares}. Proved: the budget buys nothing better."]
    if goals.balance is not Balance.TOTAL:
        return [*lines, f"{squares}; whether the budget buys anything better was not decided."]
    return [*lines, f"{squares}. Proved: no better use of the budget has less than {made.imbalance.least}."]


def _most(explained: Explanation) -> str:
    spread = explained.whole.after
    return f"{spread.fewest} to {spread.most}" if spread else "nothing"


def _gain(explained: Explanation) -> list[str]:
    asked, made = explained.request.goals.minimum_gain, explained.plan
    if not asked or not (made.partitions or made.reason):
        return []
    if not explained.gains:
        return [f"The minimum gain of {asked} % does not count: something has to change whatever is gained."]
    moves, small = counted(explained.judged.replica_moves, "replica move"), made.reason == Reason.GAIN_TOO_SMALL
    gains = "; ".join(_gained(gain, moves, would=small) for gain in explained.gains)
    if small:
        return [f"Nothing moves, for too little is gained: {gains}, and the minimum gain is {asked} %."]
    return [f"The minimum gain of {asked} % is met: {gains}."]


def _gained(gain: Gain, moves: str, *, would: bool) -> str:
    """What the fullest broker holds before and after so many moves; of topics the sum of these."""
    before, after, counts = gain.before, gain.after, "would hold" if would else "holds"
    change = f"{_percent(before - after, before)} less" if after <= before else f"{after - before} more"
    if not gain.by_topic:
        return f"the fullest broker holds {before} and {counts} {after} after {moves}, {change}"
    whose = "added up over the topics that may move, the fullest broker of each"
    return f"{whose} holds {before} of it and {counts} {after} after {moves}, {change}"


def _percent(part: int, whole: int) -> str:
    """To a tenth, and never more than it is; of nothing it is nothing."""
    tenths = part * 1000 // whole if whole else 0
    return f"{tenths // 10}.{tenths % 10} %"


def _outside(explained: Explanation) -> list[str]:
    """Which brokers do not end where full balance has them."""
    outside = [f"{a.broker} ({_beyond(a.beyond)} its share)" for a in explained.brokers if a.beyond]
    stuck = [f"{a.broker} (holds {left})" for a in explained.brokers if (left := _left_behind(a))]
    lines = [f"Outside their shares at the end: {few(outside)}."] if outside else []
    return [*lines, f"Not emptied, though they shall hold nothing: {few(stuck)}."] if stuck else lines


def _left_behind(account: BrokerAccount) -> int:
    """Replicas that would leave a broker that shall hold nothing."""
    return 0 if account.target else account.after - account.pinned


def _beyond(replicas: int) -> str:
    return f"{replicas} more than" if replicas > 0 else f"{-replicas} fewer than"


def _why_short(explained: Explanation) -> str:
    """The limit, and what full balance takes or, within the budget, would gain."""
    if explained.plan.imbalance is None:
        judged = "what the budget buys" if explained.budget_reached else "full balance"
        return f"{judged} gains less than the minimum of {explained.request.goals.minimum_gain} %"
    return _beyond_budget(explained)


def _beyond_budget(explained: Explanation) -> str:
    goals, whole = explained.request.goals, explained.whole
    return f"full balance takes {_cost(whole, goals)}, the budget is {_allowed(goals)}"


def _limit(explained: Explanation) -> str:
    if explained.plan.imbalance is not None:
        return "budget"
    return "budget and the minimum gain" if explained.budget_reached else "minimum gain"


def _allowed(goals: Goals) -> str:
    moves = [] if goals.max_replica_moves is None else [counted(goals.max_replica_moves, "replica move")]
    return listed(moves if goals.max_data_to_move is None else [*moves, format_bytes(goals.max_data_to_move)])


def _cost(made: Plan, goals: Goals) -> str:
    """In what the budget is in, and in moves; bytes are known only where the budget is in bytes."""
    moves = [counted(made.replica_moves, "replica move")]
    return listed(moves if goals.max_data_to_move is None else [*moves, format_bytes(made.data_to_move_bytes)])
