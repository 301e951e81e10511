"""Sentences about what keeps a plan from full balance: movement budget, minimum gain, pinned topics."""

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
    """The limits, their effect, and which brokers end outside their share."""
    lines = [*_pinned(explained), *_budget(explained), *_gain(explained)]
    if explained.cut_short:
        lines.append(f"Shares are those of the plan without the {_limit(explained)}.")
        lines += _outside(explained)
    return lines


def of_broker(explained: Explanation, account: BrokerAccount) -> list[str]:
    """Why a broker ends outside its share, or is not drained."""
    lines = []
    if account.pinned:
        pinned = counted(account.pinned, "replica on it is pinned and stays", "replicas on it are pinned and stay")
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
    """Where the partition would be without the limit."""
    if not explained.cut_short:
        return []
    without = f"the plan without the {_limit(explained)}"
    if set(account.whole) == set(account.target):
        return [f"{without.capitalize()} has it on the same brokers."]
    whole = ",".join(map(str, account.whole))
    return [f"Not done: {without} has it on {whole}; {_why_short(explained)}."]


def _pinned(explained: Explanation) -> list[str]:
    pinned = [p for p in explained.planned if p.pinned]
    if not pinned:
        return []
    replicas = sum(len(p.replicas) for p in pinned)
    stuck = sum(b not in explained.request.targets for p in pinned for b in p.replicas)
    what = f"{counted(len(pinned), 'partition')} with {counted(replicas, 'replica')}"
    around = "Pinned partitions stay, the others are balanced around them, and shares include them."
    lines = [f"Pinned: {what}. {around}"]
    if stuck:
        stay = "stays" if stuck == 1 else "stay"
        lines.append(f"{stuck} of these replicas {stay} on brokers that must not hold replicas, outside any share.")
    return lines


def _budget(explained: Explanation) -> list[str]:
    goals, made = explained.request.goals, explained.plan
    if not goals.limited:
        return []
    if not explained.budget_reached:
        return [f"The movement budget of {_allowed(goals)} is not reached."]
    if made.imbalance is None:
        spent = f"the plan within it takes {_cost(explained.judged, goals)} and gains too little"
        return [f"The movement budget is reached: {_beyond_budget(explained)}; {spent}."]
    lines = [f"The movement budget is reached: {_why_short(explained)}. This plan takes {_cost(made, goals)}."]
    if not goals.counts:
        return lines
    if made.before and made.after:
        lines.append(
            f"It leaves {made.after.fewest} to {counted(made.after.most, 'replica')} on a target broker; before it is "
            f"{made.before.fewest} to {made.before.most}, at full balance {_most(explained)}."
        )
    topical = goals.balance is Balance.PER_TOPIC
    whose = "target brokers' counts of each topic that may move" if topical else "target brokers' counts"
    squares = f"The sum of the squares of {whose} is {made.imbalance.squares}"
    if made.certificate.optimal:
        return [*lines, f"{squares}. Proven: no better plan is within the budget."]
    if goals.balance is not Balance.TOTAL:
        return [*lines, f"{squares}; whether a better plan is within the budget is not proven."]
    return [*lines, f"{squares}. Proven: no plan within the budget has less than {made.imbalance.least}."]


def _most(explained: Explanation) -> str:
    spread = explained.whole.after
    return f"{spread.fewest} to {spread.most}" if spread else "nothing"


def _gain(explained: Explanation) -> list[str]:
    minimum, made = explained.request.goals.minimum_gain, explained.plan
    if not minimum or not (made.partitions or made.reason):
        return []
    if not explained.gains:
        return [f"The minimum gain of {minimum} % does not apply: the plan has forced moves."]
    moves, small = counted(explained.judged.replica_moves, "replica move"), made.reason == Reason.GAIN_TOO_SMALL
    gains = "; ".join(_gained(gain, moves, would=small) for gain in explained.gains)
    if small:
        return [f"Nothing moves, because the gain is too small: {gains}, and the minimum gain is {minimum} %."]
    return [f"The minimum gain of {minimum} % is met: {gains}."]


def _gained(gain: Gain, moves: str, *, would: bool) -> str:
    """The count of the fullest broker before and after the moves; of topics, the sum of these."""
    before, after, counts = gain.before, gain.after, "would hold" if would else "holds"
    change = f"{_percent(before - after, before)} less" if after <= before else f"{after - before} more"
    if not gain.by_topic:
        return f"the fullest broker holds {before} and {counts} {after} after {moves}, {change}"
    whose = "summed over the topics that may move, the fullest broker of each"
    return f"{whose} holds {before} of it and {counts} {after} after {moves}, {change}"


def _percent(part: int, whole: int) -> str:
    """The percentage, rounded down to a tenth; 0 of an empty whole."""
    tenths = part * 1000 // whole if whole else 0
    return f"{tenths // 10}.{tenths % 10} %"


def _outside(explained: Explanation) -> list[str]:
    """The brokers that end outside their share, or are not drained."""
    outside = [f"{a.broker} ({_beyond(a.beyond)} its share)" for a in explained.brokers if a.beyond]
    stuck = [f"{a.broker} (holds {left})" for a in explained.brokers if (left := _left_behind(a))]
    lines = [f"Outside their shares at the end: {few(outside)}."] if outside else []
    return [*lines, f"Not drained, although they must not hold replicas: {few(stuck)}."] if stuck else lines


def _left_behind(account: BrokerAccount) -> int:
    """Replicas that stay on a broker to drain."""
    return 0 if account.target else account.after - account.pinned


def _beyond(replicas: int) -> str:
    return f"{replicas} more than" if replicas > 0 else f"{-replicas} fewer than"


def _why_short(explained: Explanation) -> str:
    """The limit, and what full balance costs or gains."""
    if explained.plan.imbalance is None:
        judged = "the plan within the budget" if explained.budget_reached else "full balance"
        return f"{judged} gains less than the minimum of {explained.request.goals.minimum_gain} %"
    return _beyond_budget(explained)


def _beyond_budget(explained: Explanation) -> str:
    goals, whole = explained.request.goals, explained.whole
    what = "full balance takes" if goals.counts else "all forced moves and the load goals take"
    return f"{what} {_cost(whole, goals)}, the budget is {_allowed(goals)}"


def _limit(explained: Explanation) -> str:
    if explained.plan.imbalance is not None:
        return "budget"
    return "budget and the minimum gain" if explained.budget_reached else "minimum gain"


def _allowed(goals: Goals) -> str:
    moves = [] if goals.max_replica_moves is None else [counted(goals.max_replica_moves, "replica move")]
    return listed(moves if goals.max_data_to_move is None else [*moves, format_bytes(goals.max_data_to_move)])


def _cost(made: Plan, goals: Goals) -> str:
    """The cost in moves, and in bytes if the budget is in bytes."""
    moves = [counted(made.replica_moves, "replica move")]
    return listed(moves if goals.max_data_to_move is None else [*moves, format_bytes(made.data_to_move_bytes)])
