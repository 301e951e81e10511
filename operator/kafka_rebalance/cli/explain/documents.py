"""The facts and sentences of an explanation as the fields of -o json and -o yaml."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from kafka_rebalance.cli.explain import sentences as words
from kafka_rebalance.cli.tables.load_table import load_document, load_sentences
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.planning import Goals
from kafka_rebalance.planning.explain import accounts
from kafka_rebalance.planning.explain.curve import CurvePoint
from kafka_rebalance.planning.explain.explanation import Explanation
from kafka_rebalance.planning.explain.topic_evenness import TopicCounts


def of_plan(explained: Explanation, *, log_dirs_move: bool = False) -> dict[str, Any]:
    """The whole plan, and every broker. ``log_dirs_move``: replicas move between log dirs."""
    made, goals = explained.plan, explained.request.goals
    return {
        "plan": {
            "hash": made.hash,
            "replicaMoves": made.replica_moves,
            "lowerBound": made.certificate.lower_bound,
            "optimal": made.certificate.optimal,
            "leaderMoves": made.leader_moves,
            "partitionsChanged": made.changed,
            "rackViolations": made.rack_violations,
            **({"before": asdict(made.before), "after": asdict(made.after)} if made.before and made.after else {}),
            **({"imbalance": asdict(made.imbalance)} if made.imbalance else {}),
            **({"load": load_document(made.load)} if made.load else {}),
            **({"reason": made.reason} if made.reason else {}),
        },
        **({"budget": _budget(goals, reached=explained.budget_reached)} if goals.limited else {}),
        **({"withoutLimits": _without_limits(explained.whole)} if explained.cut_short else {}),
        **({"topics": _topics(explained.topics)} if explained.topics else {}),
        "why": [
            *words.of_plan(explained, log_dirs_move=log_dirs_move),
            *(load_sentences(made.load) if made.load else ()),
        ],
        "brokers": [_broker(account, topical=explained.topics is not None) for account in explained.brokers],
    }


def of_broker(explained: Explanation, account: accounts.BrokerAccount) -> dict[str, Any]:
    """One broker, and each replica that leaves it or arrives."""
    b = account.broker
    return {
        "broker": _broker(account, topical=explained.topics is not None),
        "why": words.of_broker(explained, account),
        "leaving": [
            {"topic": gone.tp.topic, "partition": gone.tp.partition, "why": gone.why.value}
            for gone in explained.departures
            if gone.broker == b
        ],
        "arriving": [
            {"topic": p.tp.topic, "partition": p.tp.partition} for p in explained.plan.partitions if b in p.added
        ],
    }


def of_partition(explained: Explanation, account: accounts.PartitionAccount) -> dict[str, Any]:
    """One partition, and how every known broker fits its new replicas."""
    racks = {b.id: b.rack for b in explained.request.brokers}
    topics = explained.topics
    return {
        "partition": {
            "topic": account.tp.topic,
            "partition": account.tp.partition,
            "current": list(account.current),
            "target": list(account.target),
            "pinned": account.pinned,
            **({"withoutLimits": list(account.whole)} if explained.cut_short else {}),
        },
        "why": words.of_partition(explained, account),
        "leaving": [{"broker": gone.broker, "why": gone.why.value} for gone in account.leaving],
        "arriving": list(account.arriving),
        "leaderChange": account.led.value if account.led else None,
        "brokers": [
            {
                "id": b,
                "rack": racks[b],
                "fit": fit.value,
                "before": of.before,
                "after": of.after,
                **({"topic": _topic(topics.account(account.tp.topic, b))} if topics else {}),
            }
            for b, fit in account.fits.items()
            for of in (explained.broker(b),)
        ],
    }


def of_curve(points: Iterable[CurvePoint]) -> list[dict[str, Any]]:
    """The points of the curve, from the fewest moves to the whole plan."""
    return [
        {
            "moves": point.moves,
            "spread": asdict(point.spread),
            "squares": point.squares,
            "dataBytes": point.data_bytes,
            "optimal": point.optimal,
        }
        for point in points
    ]


def _budget(goals: Goals, *, reached: bool) -> dict[str, Any]:
    limits = {"maxReplicaMoves": goals.max_replica_moves, "maxDataToMove": goals.max_data_to_move}
    return {name: limit for name, limit in limits.items() if limit is not None} | {"reached": reached}


def _without_limits(whole: Plan) -> dict[str, Any]:
    """The cost of full balance."""
    return {
        "replicaMoves": whole.replica_moves,
        "dataToMove": whole.data_to_move_bytes,
        **({"after": asdict(whole.after)} if whole.after else {}),
    }


def _topics(topics: TopicCounts) -> dict[str, Any]:
    found = topics.evenness
    return {
        "evenOverAll": found.over_all,
        "evenInRacks": found.in_racks,
        "givingWay": found.giving_way,
        **_outside(topics.outside_anywhere),
    }


def _broker(account: accounts.BrokerAccount, *, topical: bool) -> dict[str, Any]:
    return {
        "id": account.broker,
        "rack": account.rack,
        "mayHold": account.target,
        "before": account.before,
        "after": account.after,
        "pinned": account.pinned,
        "share": _share(account.share),
        **({"topics": _outside(account.topics) if account.topics else None} if topical else {}),
        "leaving": sum(account.leaving.values()),
        "leavingBecause": {why.value: count for why, count in sorted(account.leaving.items())},
        "arriving": account.arriving,
        "leadersBefore": account.led_before,
        "leadersAfter": account.led_after,
    }


def _topic(account: accounts.TopicAccount) -> dict[str, Any]:
    return {"before": account.before, "after": account.after, "share": _share(account.share)}


def _outside(topics: accounts.TopicsOutside) -> dict[str, int]:
    return {"outsideBefore": topics.before, "outsideAfter": topics.after}


def _share(share: accounts.Share | None) -> dict[str, Any] | None:
    return (
        None
        if share is None
        else {"low": share.low, "high": share.high, "replicas": share.replicas, "brokers": share.brokers}
    )
