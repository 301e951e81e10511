"""Looks at every order, record, status and state of a simulated world, and says which rule was broken.

An order is judged by the readings that the process had when it sent it: later changes are not its fault. Only the
stored plans and origins are read with the product's code; the judge records by itself which partition was touched first
by whom.
"""

from collections import defaultdict

from tests.simulation.cancel_judge import CancelJudge
from tests.simulation.conditions import message, ready
from tests.simulation.leftover_judge import LeftoverJudge
from tests.simulation.log_dir_judge import LogDirJudge
from tests.simulation.origin_judge import OriginJudge
from tests.simulation.owner_judge import OwnerJudge
from tests.simulation.process import at_once
from tests.simulation.status_judge import StatusJudge

from kafka_rebalance.api.execution_spec import BETWEEN_LOG_DIRS
from kafka_rebalance.api.v1alpha1 import FINALIZER, REBALANCES
from kafka_rebalance.execution import list_budget
from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_LIST, FOLLOWER_RATE, LIST_NAMES
from kafka_rebalance.kafka.ports import AlterCode
from kafka_rebalance.kube.codec import decode_run
from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.model.run import RunOutcome

CAP_SECONDS = 60.0
"""How long a lowered cap may not have reached the operator yet."""
OLDEST_READING_SECONDS = 60.0
DEAD_SECONDS = 30.0
"""After so long, an operator has read that a broker is dead."""
_P = "parallelPartitionCount"


class Judge:
    """``broken``: the rules that were broken, in words."""

    def __init__(self, world):
        self.world = world
        self.broken = []
        self.ours = {}
        """The partitions that we have set in flight, and the uid of the resource."""
        self.limited = set()
        """Those of them that count for its limits: what others have moved since the reading for the order is theirs."""
        self.moved_at = {}
        self.late = {}
        """When an order that its sender had given up acted last."""
        """When others last moved each partition."""
        self.abandoned = set()
        """The resources, as the audit log names them, with a run that was abandoned."""
        self.first = defaultdict(dict)
        """By run, each partition as it was when we first sent something for it."""
        self.inherited = defaultdict(dict)
        """By uid, the same of the runs that the resource took over, until a run of its own has ended."""
        self.rolled_back = {}
        """By uid, the same of its last run that was rolled back."""
        self.foreign = {}
        """When others last changed a partition, or its brokers died."""
        self.edited_throttle = False
        self.rates_of_others = defaultdict(set)
        self.entries_of_others = defaultdict(set)
        self.leader = None
        self.former = []
        self.caps = defaultdict(list)
        self.deaths = {}
        """When each broker died last, also those that are back."""
        self.plans, self.origins = {}, {}
        self.cordoned = {}
        """By run, the brokers that it has cordoned, as it was last recorded before its end."""
        self.emptied = set()
        """Brokers that may stay cordoned: after a success, and after `Abandon`."""
        self.log_dirs = LogDirJudge(world, self)
        self.cancels = CancelJudge(world, self)
        self.leftovers = LeftoverJudge(world, self)
        self.statuses = StatusJudge(world, self)
        self.begun = OriginJudge(self)
        self.owners = OwnerJudge(world, self)

    def breach(self, text):
        self.world.note(f"BROKEN: {text}")
        self.broken.append(text)

    # Orders ----------------------------------------------------------------------------------------------------------

    def ordered(self, client, tp, to, state, code):
        now = self.world.loop.now
        if client is None:
            if code is AlterCode.OK:
                self.foreign[tp] = self.moved_at[tp] = now
                self.limited.discard(tp)
                self.log_dirs.disturbed()
            return
        what = f"{tp} -> {'null' if to is None else list(to)}"
        self.world.note(f"{client.process} orders {what}: {code}; was {shown(state)}")
        self._fenced(client.process, what)
        self.owners.ordered(client, what)
        if code is not AlterCode.OK:
            return
        read = client.basis.read.get(tp)
        if read is None:
            self.breach(f"{what}: sent for a partition that was never read")
            return
        seen, at = read
        if now - at > OLDEST_READING_SECONDS:
            self.breach(f"{what}: sent on a reading that is {now - at:.0f} s old")
        if seen.topic_id != state.topic_id:
            return  # made again on the way: Kafka knows topics by name only (`test_topics.py::TestDeleted`)
        found = self._run_of(tp, state, client.basis.resource)
        if found is None:
            if not client.basis.late or client.basis.resource not in self.abandoned:
                self.breach(f"{what}: in the plan of no open run")
            return
        run, plan, origin = found
        if origin is None:
            self.breach(f"{what}: sent before its origin is on record")
            return
        before = self.inherited[run.uid].get((tp, state.topic_id), state.replicas)
        if not self.first[run.uid, run.run_id]:
            self.begun.starts(what, run)
        if (tp, state.topic_id) not in self.first[run.uid, run.run_id]:
            self.begun.first_call(what, tp, seen, run, origin, client.basis.since)
        self.first[run.uid, run.run_id].setdefault((tp, state.topic_id), before)
        self.log_dirs.taken_away(run, state, to)
        self._in_sync_after(what, tp, to, seen, origin)
        if to is None:
            self.cancels.ordered(what, tp, seen, known_to(plan.get(tp), origin))
        else:
            self._places(what, tp, to, seen, run, plan, origin)
            self.statuses.ordered(what, run, plan.get(tp), set(to) - set(seen.replicas))
            if set(to) - set(seen.replicas) and not client.basis.late:
                self._throttled(what, tp, to, seen, run, client)
            self.ours[tp] = run.uid
            if self.moved_at.get(tp, -1.0) < at:
                self.limited.add(tp)
            if client.basis.late:
                self.late[tp] = now
            else:
                self._capped(what, run, client.basis, {tp} if set(to) - set(seen.replicas) else set())

    def _fenced(self, process, what):
        """A call of a container that was killed may arrive after its next start, which takes the Lease at once."""
        restarted = process in self.former and process.identity == self.leader.identity
        if process is not self.leader and not restarted:
            if process in self.former:
                self.breach(f"{what}: sent by {process}, after {self.leader} has led")
            self.former.append(self.leader)
            self.leader = process

    def recorded(self, process, config_map, *, late=False):
        """A record has been written; ``late``: after its sender has given it up."""
        if process is not None:
            self._fenced(process, "a record")
        self.owners.recorded()
        if "run.json" in config_map.get("data", {}):
            run = decode_run(config_map["data"]["run.json"])
            self.leftovers.recorded(run, late=late)
            self._note_end(run)

    def _note_end(self, run):
        """A success keeps its cordons, even if its resource is edited or deleted before its status says so.

        An abandoned run leaves its cordons too, and so does one whose cluster has got another owner: its record no
        longer names the brokers. What was taken over goes back to where it was before both, until a run of the
        successor has ended.
        """
        key = run.uid, run.run_id
        if run.open:
            if run.unproved:  # another owner has got the cluster, and the log names the brokers
                self.emptied.update(self.cordoned.get(key, ()))
            self.cordoned[key] = run.cordoned
            return
        self.log_dirs.ended(run)
        if run.outcome is RunOutcome.SUCCEEDED:
            self.emptied.update(run.cordoned)
        elif run.outcome is RunOutcome.ABANDONED:  # Kafka is left as it is
            self.log_dirs.abandoned = True
            self.abandoned.add(f"{run.namespace}/{run.name}")
            self.emptied.update(self.cordoned.get(key, ()))
        before = self.inherited.pop(run.uid, {}) | self.first.get(key, {})
        if run.outcome is RunOutcome.ROLLED_BACK:
            self.rolled_back[run.uid] = before
        elif run.outcome is RunOutcome.SUCCEEDED:
            self.first[key] = before  # an undo leads back to that, also where this run has moved nothing itself
        if run.successor is not None:
            self.statuses.taken_over(run, self.first.get(key, {}))
            self.inherited[run.successor] = before | self.inherited[run.successor]

    def _run_of(self, tp, state, resource):
        """The open run of the resource, with its plan and the recorded origin; None: it does not move the partition."""
        for run in at_once(RunStore(self.world.kube).list_unshared()):
            if f"{run.namespace}/{run.name}" != resource or not (run.open or run.undo):
                continue
            plan, about = self._plan(run), run.to_undo if run.undo else run
            origin = self._origins(about.uid, about.run_id).get(tp)
            if origin is not None and origin.topic_id != state.topic_id:
                origin = None
            if origin is not None or tp in plan:
                return run, plan, origin
        return None

    def _plan(self, run):
        key = run.uid, run.plan_hash
        if key not in self.plans:
            stored = at_once(PlanStore(self.world.kube).load(*key))
            if stored is None:
                return {}
            self.plans[key] = {row.tp: row for row in stored.plan.partitions}
        return self.plans[key]

    def _origins(self, uid, run_id):
        store = OriginStore(self.world.kube)
        index = self.world.kube.config_maps.get(store._blobs.name(uid, run_id))
        version = index and index["metadata"]["resourceVersion"]
        key = uid, run_id, version
        if key not in self.origins:
            self.origins[key] = dict(at_once(store.load(uid, run_id)) or {})
        return self.origins[key]

    def _in_sync_after(self, what, tp, to, seen, origin):
        """No order of ours leaves fewer in sync than min.insync.replicas, or than were found if those are fewer."""
        if to is None:
            left = set(seen.replicas) - set(seen.adding)
            after = seen.isr & left
        else:
            after = (seen.isr | set(to) - set(seen.replicas)) & set(to)
            left = seen.isr & set(to)
            if not left:
                self.breach(f"{what}: keeps no replica in sync; read {shown(seen)}")
        least = min(self.world.min_insync(tp.topic), len(seen.isr), len(origin.replicas))
        if len(after) < least:
            self.breach(f"{what}: leaves {sorted(after)} in sync, and {least} are required; read {shown(seen)}")

    def _places(self, what, tp, to, seen, run, plan, origin):
        row = plan.get(tp)
        known = known_to(row, origin)
        added = set(to) - set(seen.replicas)
        if seen.in_flight:
            self.breach(f"{what}: sent to a partition in flight; read {shown(seen)}")
        if added - known:
            self.breach(f"{what}: adds {sorted(added - known)}, which neither the plan nor the origin names")
        fewest = min(fewest_of(row, origin), len(seen.replicas))
        if len(to) < fewest:
            self.breach(f"{what}: leaves fewer than {fewest} replicas")
        body = self.world.body_of(run.uid)
        if body is not None and FINALIZER not in body["metadata"]["finalizers"]:
            self.breach(f"{what}: sent for {body['metadata']['name']}, which has no finalizer of ours")
        dead = {b for b in added & self.world.kafka.dead.keys() if self.world.loop.now - self.deaths[b] > DEAD_SECONDS}
        if dead:
            self.breach(f"{what}: adds {sorted(dead)}, dead for more than {DEAD_SECONDS:.0f} s")
        back = run.undo or (body is not None and "deletionTimestamp" in body["metadata"])
        if back and set(seen.replicas) - known:
            self.breach(f"{what}: undoes what others have moved; read {shown(seen)}, known {sorted(known)}")

    def _throttled(self, what, tp, to, seen, run, client):
        """A copy starts with its throttle in place: the follower's side listed, with a rate.

        Judged by what the operator had read: it sets the throttle before it sends the orders of a round, and a new
        replica order becomes a copy if another tool moves the partition before the order arrives.
        """
        if self.edited_throttle or client.process.may_be_unlimited(run.uid, client.basis.since):
            return
        values = self.world.kafka.values
        for b in set(to) - set(seen.replicas):
            entries = values.get((tp.topic, FOLLOWER_LIST), "").split(",")
            if f"{tp.partition}:{b}" not in entries or (b, FOLLOWER_RATE) not in values:
                self.breach(f"{what}: the copy to {b} is not throttled")

    def _capped(self, what, run, basis, begun):
        """``begun``: what this order sets in flight. It may be unknown that an order which was given up acted."""
        unseen = {tp for tp, at in self.late.items() if at >= basis.since}
        flying = {tp for tp in self.limited - unseen if self.ours[tp] == run.uid and self._flies(tp)} | begun
        most = self.most(self.caps[run.uid], 100)
        if len(flying) > most:
            self.breach(f"{what}: {len(flying)} partitions in flight, and {_P} is {most}")

    def most(self, caps, default):
        """The highest cap that was in force lately."""
        since = self.world.loop.now - CAP_SECONDS
        return max([cap for at, cap in caps if at >= since] + [cap for _, cap in caps[-1:]], default=default)

    def _flies(self, tp):
        state = self.world.kafka.states.get(tp)
        return state is not None and state.in_flight

    def cap(self, uid, execution):
        """The caps are edited: the former ones were in force until now."""
        self._cap(self.caps[uid], execution[_P])
        self._cap(self.log_dirs.caps[uid], execution.get("maxPerBroker", {}).get("betweenLogDirs", BETWEEN_LOG_DIRS))

    def _cap(self, caps, most):
        now = self.world.loop.now
        if caps:
            caps.append((now, caps[-1][1]))
        caps.append((now, most))

    # Throttle --------------------------------------------------------------------------------------------------------

    def configured(self, client, where, operations, before):
        if client is None:
            return
        self._fenced(client.process, f"configs of {where}")
        self.owners.ordered(client, f"configs of {where}")
        self.world.note(f"{client.process} configures {where}: {[(o.name, str(o.op), o.value) for o in operations]}")
        for name in LIST_NAMES:
            value = self.world.kafka.values.get((where, name), "")
            if len(value) > list_budget.MOST_BYTES:
                self.breach(f"{name} of {where} has {len(value)} bytes")

    # Results ---------------------------------------------------------------------------------------------------------

    def changed(self, tp):
        self.world.note(f"  {shown(self.world.kafka.states[tp])}")

    def look(self):
        """After every event: forget the partitions that are no longer in flight."""
        for tp in [tp for tp in self.ours if not self._flies(tp)]:
            del self.ours[tp]
            self.limited.discard(tp)

    def touched(self, tp, topic_id):
        """Whether others have changed the partition, or the death of a broker may have."""
        state = self.world.kafka.states.get(tp)
        gone = state is None or state.topic_id != topic_id
        return gone or tp in self.foreign or bool(self.deaths)

    def reported(self, plural, body):
        if plural != REBALANCES:
            return
        self.statuses.reported(body)
        reason = ready(body)
        name, uid = body["metadata"]["name"], body["metadata"]["uid"]
        if reason != self.world.said.get(uid):
            self.world.said[uid] = reason
            self.world.note(f"{name} is {reason}: {message(body)[:300]}")
            if reason in {"Succeeded", "NothingToDo"}:
                self.emptied.update(body["spec"].get("brokers", {}).get("decommission", ()))
            if reason == "Succeeded" and self.statuses.newly_succeeded(body):
                self._arrived(uid, body)

    def _arrived(self, uid, body):
        run = at_once(RunStore(self.world.kube).load(uid))
        if run is None:
            return
        skipped = body["status"].get("skipped") or ()
        if skipped:
            return
        for tp, row in self._plan(run).items():
            state = self.world.kafka.states.get(tp)
            if self._only_remembers(run, row):
                continue  # another run may move it
            others = self.touched(tp, row.topic_id) or self.log_dirs.by_another(tp, uid, self.statuses.ended(body))
            if not others and state.replicas != row.target:
                self.breach(f"{uid} is Succeeded: {shown(state)}, and the target is {list(row.target)}")

    def _only_remembers(self, run, row):
        """Whether the run moves only log dirs of the partition, or an earlier plan named it and no call was sent."""
        if row.current != row.target or row.elects:
            return False
        origin = self._origins(run.uid, run.run_id).get(row.tp)
        return origin is None or origin.replicas == row.target or row.tp in {tp for tp, _ in self.log_dirs._plan(run)}

    def gone(self, body):
        uid = body["metadata"]["uid"]
        events = self.world.kube.told.get(uid, ())
        told = [reason for reason, _ in events]
        self.world.note(f"{body['metadata']['name']} is gone: {told[-3:]}")
        if not told or told[-1] != "RolledBack":
            return
        for (tp, topic_id), before in self.rolled_back.get(uid, {}).items():
            state = self.world.kafka.states.get(tp)
            others = self.touched(tp, topic_id) or self.log_dirs.by_another(tp, uid)
            if not others and state.replicas != before:
                self.breach(f"{uid} is rolled back: {shown(state)}, and it was {list(before)}")

    def end(self):
        """The last look, when nothing names the cluster any more."""
        self.leftovers.end()
        self.log_dirs.end()


def known_to(row, origin):
    """The brokers that the plan or the origin of a partition names."""
    return set(origin.replicas) | (set(row.target) | set(row.current) if row else set())


def fewest_of(row, origin):
    """The fewest replicas that a step of the run leaves."""
    return min(len(origin.replicas), len(row.target)) if row else len(origin.replicas)


def shown(state):
    if state is None:
        return "no partition"
    more = f" adding {list(state.adding)} removing {list(state.removing)}" if state.in_flight else ""
    return f"{state.tp} {list(state.replicas)} isr {sorted(state.isr)} led by {state.leader}{more}"
