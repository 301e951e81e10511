"""Whether brokers that are decommissioned are proved empty. Pure.

Metadata shows no replica of a topic that we may not describe, and gives no error for it. So the brokers' own log dirs
must be empty too; to read them takes Describe on the cluster only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

from kafka_rebalance.kafka.ports import Answers, LogDir
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.reconcile.state.assessment import Drain

WAIT_SECONDS = 60.0
"""How long to wait for brokers that do not answer or still delete files, before saying so."""
_NAMED = 5

LogDirAnswers = Answers[BrokerId, tuple[LogDir, ...], BrokerId]


def asked_for_proof(leaving: Collection[BrokerId], live: Collection[BrokerId]) -> set[BrokerId]:
    """The brokers whose log dirs are read: those that leave, or all where one of these is not live.

    A broker that is not live cannot be asked. If no other one holds a topic that is hidden from us, metadata is whole.
    """
    return set(live) if set(leaving) - set(live) else set(leaving)


def drain_of(
    leaving: Collection[BrokerId],
    answers: LogDirAnswers,
    asked: Collection[BrokerId],
    hidden: Collection[str],
    seconds: float,
) -> Drain | None:
    """What the log dirs prove, ``seconds`` after metadata showed the brokers empty; None: not known yet, ask again.

    ``hidden``: topics on these disks that we may not describe.
    """
    names, found = _brokers(leaving), partial(Drain, frozenset(leaving))
    if answers.errors:
        why = next(iter(answers.errors.values())).message
        return found(None, f"brokers {names} hold no replica of a topic that we may describe, and nothing more: {why}")
    held = {tp for broker in leaving for log_dir in answers.get(broker, ()) for tp in log_dir.replica_bytes}
    if unseen := {tp for tp in held if tp.topic in hidden}:
        allow = "allow Describe on these topics and select them"
        message = f"brokers {names} still hold replicas of topics that we may not describe: {_some(unseen)}; {allow}"
        return found(False, message)
    if hidden and not set(leaving) <= set(asked):
        text = ", ".join(sorted(hidden)[:_NAMED])
        return found(None, f"of {names} not all are live, and we may not describe topics that they may hold: {text}")
    silent = set(asked) - answers.keys()
    if not (held or silent):
        proof = "and their log dirs are empty" if set(leaving) <= set(asked) else "and no topic is hidden from us"
        return found(True, f"brokers {names} held no replica at two readings, {proof}")
    if seconds < WAIT_SECONDS:
        return None
    if held:
        return found(False, f"brokers {names} still have {len(held)} partitions in their log dirs: {_some(held)}")
    return found(None, f"brokers {_brokers(silent)} did not say what is in their log dirs")


def _some(tps: Iterable[TopicPartition]) -> str:
    return ", ".join(str(tp) for tp in sorted(tps)[:_NAMED])


def _brokers(ids: Iterable[BrokerId]) -> str:
    return ", ".join(str(b) for b in sorted(ids))
