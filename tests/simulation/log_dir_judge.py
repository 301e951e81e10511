"""The rules of the judge for moves between log dirs.

The judge uses what the process had read when it sent an order. It records by itself where each replica was before a run
first requested another log dir.
"""

from collections import Counter, defaultdict

from tests.simulation.process import at_once
from tests.simulation.virtual_time import START

from kafka_rebalance.api.execution_spec import BETWEEN_LOG_DIRS
from kafka_rebalance.execution.reassignment_throttle import LOG_DIR_RATE
from kafka_rebalance.kafka.ports import LogDirCode
from kafka_rebalance.kube.store import PlanStore, RunStore
from kafka_rebalance.model.run import RunOutcome

PLANNING_SECONDS = 20.0
DISTURBED_SECONDS = 60.0
"""For this time after a change by others, log dirs may hold more than the operator knows."""


class LogDirJudge:
    """``failed``: brokers that have started without one of their log dirs. ``foreign``: replicas that others moved."""

    def __init__(self, world, judge):
        self.world, self.judge = world, judge
        self.caps = defaultdict(list)
        self.failed, self.foreign = set(), set()
        self.begun = {}
        """The log dir of each replica that the operator has requested to move and that has not arrived."""
        self.first = defaultdict(dict)
        """By run, the log dir of each replica before the operator first requested another one."""
        self.inherited = defaultdict(dict)
        self.movers = defaultdict(list)
        """By partition or replica, when it was moved and the uid of the resource that did.

        What a resource takes over counts as moved by it.
        """
        self.plans = {}
        self.abandoned = False
        self._disturbed_at = float("-inf")

    # Orders ----------------------------------------------------------------------------------------------------------

    def ordered(self, client, orders):
        """Judge orders before they are carried out."""
        if client is None:
            return
        named = ", ".join(f"{tp} on {broker} -> {path}" for (tp, broker), path in sorted(orders.items()))
        self.world.note(f"{client.process} asks for log dirs: {named}")
        self.judge._fenced(client.process, "log dirs")
        self.judge.owners.ordered(client, "log dirs")
        begins = Counter()
        for (tp, broker), path in sorted(orders.items()):
            self._judge_order(f"{tp} on {broker} -> {path}", client, (tp, broker), path, begins)

    def _judge_order(self, what, client, key, path, begins):
        tp, broker = key
        kafka, state = self.world.kafka, self.world.kafka.states.get(tp)
        found = self._row(key, path)
        if state is None:
            return
        if found is None:
            self.judge.breach(f"{what}: in the plan of no open run")
            return
        run, row = found
        known = {row.before, row.after, row.origin}
        read = [places_of(key, dirs) for _, dirs in client.process.log_dirs_read[broker]]
        if key not in kafka.where or all(at is None for at, _ in read):
            if path not in known:
                self.judge.breach(f"{what}: placed where the plan does not want it")
            return  # it is placed, and not there yet
        self._remember(run, key, state)
        if any(at == path for at, _ in read):
            if all(future not in {None, *known} for _, future in read):
                self.judge.breach(f"{what}: cancels the copy of others; read {read}")
            return
        begins[broker] += 1
        self.movers[key].append((self.world.loop.now, run.uid))
        about = run.to_undo if run.undo else run
        body = self.world.body_of(run.uid)
        back = run.undo or (body is not None and "deletionTimestamp" in body["metadata"])
        comes = row.after is None if back else row.before is None
        if path not in known:
            self.judge.breach(f"{what}: the plan does not name this log dir")
        if not comes and all(at not in {None, *known} for at, _ in read):
            self.judge.breach(f"{what}: undoes what others have moved; read {read}, known {known}")
        if all(future not in {None, *known} for _, future in read):
            self.judge.breach(f"{what}: another tool copies it; read {read}")
        if tp not in self.judge._origins(about.uid, about.run_id):
            self.judge.breach(f"{what}: sent before its origin is on record")
        self._throttled(what, client, run, broker)
        flying = sum(len(log_dir.future_bytes) for log_dir in client.process.log_dirs_read[broker][-1][1])
        most = self.judge.most(self.caps[run.uid], BETWEEN_LOG_DIRS)
        if flying + begins[broker] > most:
            self.judge.breach(
                f"{what}: {flying} copies in flight, {begins[broker]} begin, and betweenLogDirs is {most}"
            )

    def _throttled(self, what, client, run, broker):
        if self.judge.edited_throttle or client.process.may_be_unlimited(run.uid, client.rounds_began[0]):
            return
        if (broker, LOG_DIR_RATE) not in self.world.kafka.values:
            self.judge.breach(f"{what}: the copy is not throttled")

    def answered(self, client, orders, answers):
        """Note the answers to orders that were carried out."""
        done = {key: path for key, path in orders.items() if answers[key] is LogDirCode.OK}
        if client is None:
            for key in done:
                self.foreign.add(key)
                self.begun.pop(key, None)
                self.disturbed()
            return
        for (tp, broker), path in done.items():
            if self.world.kafka.future.get((tp, broker)) == path:
                self.begun[tp, broker] = path
                self.room_for(tp, broker, path)

    def room_for(self, tp, broker, path):
        """The orders of the operator never exceed the capacity of a log dir."""
        kafka, now = self.world.kafka, self.world.loop.now
        taken, capacity = kafka.taken(broker, path), kafka.capacity.get((broker, path))
        if capacity is not None and taken > capacity and now - self._disturbed_at > DISTURBED_SECONDS:
            self.judge.breach(f"{path} of {broker} gets {tp}: {taken} bytes in all, and it has {capacity}")

    def disturbed(self):
        """Others have changed what log dirs hold, or what is known of them."""
        self._disturbed_at = self.world.loop.now

    def moved(self, key):
        """A copy has arrived."""
        self.begun.pop(key, None)
        self.world.note(f"  {key[0]} on {key[1]} is in {self.world.kafka.where[key]}")

    def _row(self, key, path):
        """The open run that moves the replica, and the row of its plan: the one that fits best."""
        found = []
        for run in at_once(RunStore(self.world.kube).list_unshared()):
            row = self._plan(run).get(key) if run.open or run.undo else None
            if row is not None:
                about = run.to_undo if run.undo else run
                recorded = key[0] in self.judge._origins(about.uid, about.run_id)
                found.append((path in {row.before, row.after, row.origin}, recorded, len(found), run, row))
        return max(found)[3:] if found else None

    def _plan(self, run):
        plan = run.uid, run.plan_hash
        if plan not in self.plans:
            stored = at_once(PlanStore(self.world.kube).load(*plan))
            if stored is None:
                return {}
            self.plans[plan] = {row.key: row for row in stored.plan.log_dirs}
        return self.plans[plan]

    def by_another(self, moved, uid, since=None):
        """Whether another rebalance has moved a partition or replica since then; None: since this one began there."""
        rows = self.movers[moved]
        since = min((at for at, mover in rows if mover == uid), default=0.0) if since is None else since
        return any(at >= since and mover != uid for at, mover in rows)

    # Runs ------------------------------------------------------------------------------------------------------------

    def taken_away(self, run, state, to):
        """A step removes replicas whose log dirs the plan stores for a rollback."""
        self.movers[state.tp].append((self.world.loop.now, run.uid))
        for broker in set(state.replicas) - set(to or state.replicas):
            row = self._plan(run).get((state.tp, broker))
            if row is not None and row.origin is not None:
                self._remember(run, (state.tp, broker), state)

    def _remember(self, run, key, state):
        """Note where a replica was before the run first changed it."""
        tp, broker = key
        about = run.to_undo if run.undo else run
        replica = tp, state.topic_id, broker
        at = self.world.kafka.where.get(key)
        self.first[about.uid, about.run_id].setdefault(replica, self.inherited[run.uid].get(replica, at))

    def ended(self, run):
        """At its end every replica is in its place, unless others have moved it or its log dir has failed."""
        if run.outcome is RunOutcome.SUCCEEDED:
            for (tp, broker), row in self._plan(run).items():
                state, planned = self.world.kafka.states.get(tp), self.judge._plan(run)[tp]
                if row.after is not None and state is not None and state.replicas == planned.target:
                    self._is_in(f"{run.name} has succeeded", run, (tp, planned.topic_id, broker), row.after)
        about = run.to_undo if run.outcome is RunOutcome.UNDONE else run
        before = self.inherited.pop(run.uid, {}) | self.first.get((about.uid, about.run_id), {})
        if run.outcome in {RunOutcome.ROLLED_BACK, RunOutcome.UNDONE}:
            for replica, path in before.items():
                self._is_in(f"{run.name} is {run.outcome}", run, replica, path)
        if run.successor is not None:
            self.inherited[run.successor] = before | self.inherited[run.successor]
            for moved, rows in self.movers.items():
                self.movers[moved] = [(at, run.successor if uid == run.uid else uid) for at, uid in rows]

    def _is_in(self, what, run, replica, path):
        tp, topic_id, broker = replica
        kafka, key = self.world.kafka, (tp, broker)
        state = kafka.states.get(tp)
        if state is None or state.topic_id != topic_id or broker not in state.replicas:
            return
        opened = (run.opened_at - START).total_seconds() - PLANNING_SECONDS
        others = tp in self.judge.foreign or key in self.foreign or self.by_another(key, run.uid, opened)
        if others or broker in self.failed:
            return
        if kafka.where.get(key) != path or key in kafka.future:
            at = f"{kafka.where.get(key)} -> {kafka.future.get(key)}"
            self.judge.breach(f"{what}: {tp} on {broker} is in {at}, and should be in {path}")

    def end(self):
        """No copy of the operator is in flight, except after `Abandon`, or when a dead broker is back."""
        for (tp, broker), path in self.begun.items():
            if broker not in self.judge.deaths and not self.abandoned and (tp, broker) in self.world.kafka.future:
                self.judge.breach(f"{tp} on {broker} is still copied to {path}")


def places_of(key, dirs):
    """The log dirs of a replica and of its future replica, in what its broker has said."""
    at = next((log_dir.path for log_dir in dirs if key[0] in log_dir.replica_bytes), None)
    return at, next((log_dir.path for log_dir in dirs if key[0] in log_dir.future_bytes), None)
