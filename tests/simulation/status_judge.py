"""The rules of the judge for what a resource asks for and what its status says: approvals, drained brokers, reasons."""

import re
from collections import defaultdict
from datetime import datetime

from tests.simulation.conditions import message, ready
from tests.simulation.process import at_once
from tests.simulation.virtual_time import START

from kafka_rebalance.api.v1alpha1 import parse_rebalance
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.reasons import Reason

_UNREAD_SECONDS = 60.0
"""How long an edit may not have reached the operator yet."""
_REASONS = {str(reason) for reason in Reason}


class StatusJudge:
    """``judge``: it knows what others have moved."""

    def __init__(self, world, judge):
        self.world, self.judge = world, judge
        self._approvals = defaultdict(list)
        """By uid, ``spec.approval`` and the time from which on it was so."""
        self._selected = defaultdict(set)
        """By uid, the patterns of topics that the resource has ever had."""
        self.denied = set()
        """The topics and brokers for which the operator has ever lacked a permission."""
        self.made = {}
        """When each partition was created that has not been there from the beginning."""
        self.topics_deleted = False
        """Whether a topic has been deleted, by which the cluster may have been known."""
        self._empty = {}
        """By uid, the brokers that are said to be drained."""
        self._proved = set()
        """By uid, the end of each run whose status has said so. A late write of an older status may be corrected."""
        self._succeeded = set()
        """The same for successes."""
        self._leaving = {}
        """By uid and generation of the spec, the brokers to be emptied."""

    def edited(self, body):
        """The API server has a new version of the resource."""
        uid, spec = body["metadata"]["uid"], body["spec"]
        self._leaving[uid, body["metadata"].get("generation")] = spec.get("brokers", {}).get("decommission", ())
        self._selected[uid].update(spec.get("topics", {}).get("include", [".*"]))
        known, approval = self._approvals[uid], spec.get("approval", {})
        if not known or known[-1][1] != approval:
            known.append((self.world.loop.now, approval))

    def ordered(self, what, run, row, added):
        """A copy of a plan that has to be approved starts only with its approval."""
        if run.undo or row is None or not added or not added <= set(row.target) - set(row.current):
            return
        body = self.world.body_of(run.uid)
        if body is None or "deletionTimestamp" in body["metadata"]:
            return
        since = self.world.loop.now - _UNREAD_SECONDS
        known = self._approvals[run.uid]
        lately = [approval for at, approval in known if at >= since] + [a for at, a in known if at < since][-1:]
        if not any(a.get("policy") != "Manual" or a.get("planHash") == run.plan_hash for a in lately):
            self.judge.breach(f"{what}: {run.name} needs the approval of {run.plan_hash}, and has {lately[-1]}")

    def reported(self, body):
        """Every state has a reason and a message; drained brokers are empty; there is only one cluster."""
        reason, name = ready(body), body["metadata"]["name"]
        if reason not in _REASONS or not message(body):
            self.judge.breach(f"{name} is {reason} without a reason and a message")
        self._concerned(body, reason)
        if not self.topics_deleted and "but is another cluster" in message(body):
            self.judge.breach(f"{name} takes the cluster for another one: {message(body)}")
        self._drained(body)

    def _concerned(self, body, reason):
        """A topic that may not be described holds up only the rebalances that select it."""
        uid, topics = body["metadata"]["uid"], {denied for denied in self.denied if isinstance(denied, str)}
        if reason != Reason.KAFKA_AUTHORIZATION_FAILED or topics != self.denied or self.judge.inherited.get(uid):
            return
        if not any(re.fullmatch(pattern, topic) for pattern in self._selected[uid] for topic in topics):
            name = body["metadata"]["name"]
            self.judge.breach(f"{name} waits for permissions on {sorted(topics)}, and selects {self._selected[uid]}")

    def taken_over(self, run, sent):
        """Who takes a run over plans every partition that the run has sent something, or names it."""
        successor, body = at_once(RunStore(self.world.kube).load(run.successor)), self.world.body_of(run.successor)
        if successor is None or body is None or body["spec"].get("takesOver") == run.name:
            return
        planned = self.judge._plan(successor)
        unplanned = {key: before for key, before in sent.items() if key[0] not in planned}
        left = [str(key[0]) for key, before in unplanned.items() if not self._skips(run, *key, before)]
        if left:
            self.judge.breach(f"{successor.name} takes {run.name} over, and its plan does not move {left}")

    def _skips(self, run, tp, topic_id, before):
        """Whether the run may leave the partition alone: others have changed it, or a broker of it has died."""
        state, row = self.world.kafka.states.get(tp), self.judge._plan(run).get(tp)
        if state is None or state.topic_id != topic_id or tp in self.judge.foreign:
            return True
        if self._timed_out(run) and not state.in_flight:
            return True
        brokers = {*before, *state.replicas, *(row.target if row is not None else ())}
        return not brokers.isdisjoint(self.judge.deaths) or self.judge.log_dirs.by_another(tp, run.successor)

    def _timed_out(self, run):
        """Whether the rollback of the run only cancels what is in flight by now."""
        body = self.world.body_of(run.uid)
        begun = body and body["metadata"].get("deletionTimestamp")
        timeout = parse_rebalance(body).spec.rollback.timeout_seconds if begun else None
        if timeout is None:
            return False
        return (self.world.clock.now() - datetime.fromisoformat(begun)).total_seconds() > timeout

    def newly_succeeded(self, body):
        """Whether the status says of this run for the first time that it has succeeded."""
        end = body["metadata"]["uid"], body["status"].get("completedAt")
        said = end in self._succeeded
        self._succeeded.add(end)
        return not said

    @staticmethod
    def ended(body):
        """When the run ended. Its status may say so later, for example as long as an edited spec is invalid."""
        return (datetime.fromisoformat(body["status"]["completedAt"]) - START).total_seconds()

    def _drained(self, body):
        """At the moment when the condition becomes true, for the spec that the status is of."""
        uid, status = body["metadata"]["uid"], body.get("status", {})
        proved = [c for c in status.get("conditions", ()) if c["type"] == "Drained" and c["status"] == "True"]
        if not proved:
            self._empty.pop(uid, None)
            return
        leaving = self._leaving.get((uid, proved[0].get("observedGeneration")), ())
        said, end = self._empty.get(uid) == leaving, (uid, status.get("completedAt"), *leaving)
        self._empty[uid] = leaving
        if end[1] is not None:
            said = said or end in self._proved
            self._proved.add(end)
        if said:
            return
        for tp, state in self.world.kafka.states.items():
            here = set(leaving) & set(state.replicas)
            if here and not self._changed_lately(tp):
                name = body["metadata"]["name"]
                self.judge.breach(f"{name} says that {sorted(here)} are drained, and {tp} is on {state.replicas}")

    def _changed_lately(self, tp):
        changed = max(self.judge.foreign.get(tp, -_UNREAD_SECONDS), self.made.get(tp, -_UNREAD_SECONDS))
        return self.world.loop.now - changed <= _UNREAD_SECONDS
