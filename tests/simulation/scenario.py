"""A cluster, its resources, and what happens to both: all drawn from the seed."""

import re

from tests.simulation.brokers import MIB
from tests.simulation.conditions import message, ready
from tests.simulation.other_tools import OtherTools
from tests.simulation.process import at_once
from tests.simulation.process_events import ProcessEvents

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REASSIGNMENT_THROTTLES, REBALANCES, UNDO_ANNOTATION
from kafka_rebalance.execution.reassignment_throttle import LIST_NAMES, RATE_NAMES, REPLICATION_RATES

_OPEN_RUNS = re.compile(r"runs are open \(([^)]*)")
_WAITS_FOR = re.compile("waits for ([^/]+)/([^,]+),")


class Scenario:
    """``prepare`` makes the world; ``happenings`` are what may happen, one at a time."""

    def __init__(self, world):
        self.world, self.draw = world, world.random
        self.made = 0
        processes, others = ProcessEvents(world), OtherTools(world)
        self.happenings = [
            (6, processes.kill_at_request),
            (3, processes.kill_now),
            (2, processes.pause),
            (3, processes.pause_after_record),
            (2, processes.cut_off),
            (2, self.broker_dies),
            (5, self.original_dies),
            (1, self.broker_is_slow),
            (2, others.move_of_others),
            (1, others.cancel_of_others),
            (1, others.election_of_others),
            (1, others.topic_is_deleted),
            (1, others.topic_is_created_again),
            (1, others.partition_is_added),
            (2, others.throttle_of_others),
            (1, others.entry_of_others),
            (3, self.edit_execution),
            (2, self.edit_throttle),
            (2, self.edit_plan),
            (4, self.delete),
            (1, self.rename),
            (2, self.create),
            (1, self.undo),
            (2, self.limits),
            (1, self.connection),
        ]

    def calm_down(self):
        """The end of what others have begun."""

    def recorded(self, _process):
        """An operator has written a record."""

    def waits_for_good(self, body, reason):
        """Whether nothing will happen for the resource, and it says why: it is held up, or queued behind one that is.

        Those between the two need not be held up by the same thing. Nor does a cluster get another owner before the
        runs have ended that are open there.
        """
        if reason == "ClusterIdCollision":
            return any(self.held_up_for_good(run, ready(run)) for run in self._open_runs(message(body)))
        first = self._first_of_the_queue(body) if reason == "Queued" else body
        return first is not None and self.held_up_for_good(first, ready(first))

    def held_up_for_good(self, _body, reason):
        """A rebalance keeps its place in the queue while a rate of others refuses its copies."""
        return reason == "ReplicationThrottleLower"

    def _open_runs(self, said):
        """The rebalances whose open runs the message names."""
        found = _OPEN_RUNS.search(said)
        keys = [(REBALANCES, *name) for name in re.findall("([^ ,/]+)/([^ ,/]+)", found[1])] if found else ()
        return [self.world.kube.resources[key] for key in keys if key in self.world.kube.resources]

    def _first_of_the_queue(self, body):
        """Whom a queued rebalance waits for in the end, by the names in the messages; None if nobody is there."""
        resources = self.world.kube.resources
        for _ in resources:  # messages of earlier rounds may name each other in a circle
            if body is None or ready(body) != "Queued":
                return body
            behind = _WAITS_FOR.match(message(body))
            body = resources.get((REBALANCES, *behind.groups())) if behind else None
        return None

    def allow_all(self):
        """From now on every request is permitted."""

    # The world at the start --------------------------------------------------------------------------------------

    def prepare(self):
        draw, kafka = self.draw, self.world.kafka
        brokers = sorted(kafka.brokers)
        used = brokers[: draw.randint(3, len(brokers))]
        for number in range(draw.randint(1, 3)):
            factor = draw.choice((1, 2, 2, 3, 3, 3))
            factor = min(factor, len(used))
            rows = [draw.sample(used, factor) for _ in range(draw.randint(1, 6))]
            # As many as there are replicas: nothing may be dropped while one of them is out of sync.
            min_insync = draw.randint(1, factor)
            kafka.make_topic(f"t{number}", rows, draw.choice((0, 1, 5, 20)) * MIB, min_insync)
        if draw.random() < 0.25:
            for b in draw.sample(brokers, draw.randint(1, len(brokers))):
                for name in REPLICATION_RATES:
                    kafka.values[b, name] = str(200 * MIB)
        if draw.random() < 0.2:
            for b in brokers:
                kafka.files[b, REPLICATION_RATES[0]] = str(150 * MIB)
        if draw.random() < 0.25:
            entry = f"{draw.randint(0, 3)}:{draw.choice(brokers)}"
            for name in LIST_NAMES:
                kafka.values["t0", name] = entry
                self.world.judge.entries_of_others["t0", name].add(entry)
        self.world.rates_before = {key: value for key, value in kafka.values.items() if key[1] in RATE_NAMES}
        if draw.random() < 0.15:
            self.connection()
        for _ in range(draw.choice((1, 1, 1, 2))):
            self.create()
        if draw.random() < 0.3:
            self.limits()
        if draw.random() < 0.2:
            self.create(namespace="b")

    def spec(self):
        draw, kafka = self.draw, self.world.kafka
        brokers = sorted(int(b) for b in (*kafka.brokers, *kafka.dead))
        spec = {"topics": {"include": draw.choice((["t.*"], ["t.*"], ["t0"], ["t1", "t2"]))}}
        kind = draw.random()
        if kind < 0.5:
            spec["brokers"] = {"decommission": draw.sample(brokers, 1)}
        elif kind < 0.6:
            spec["replicationFactor"] = draw.choice((1, 2, 3))
        elif kind < 0.7:
            spec["brokers"] = {"include": sorted(draw.sample(brokers, len(brokers) - 1))}
        elif kind < 0.75:
            spec["strategy"] = "PreferredLeaders"
        return spec

    def execution(self):
        draw = self.draw
        return {
            "parallelReplicaCount": draw.choice((1, 1, 2)),
            "parallelPartitionCount": draw.choice((1, 2, 4, 100)),
            "parallelLeaderMovements": draw.choice((1, 20)),
            "maxUnhealthy": draw.choice((0, 20)),
            "brokerSettleTime": "5s",
            "suspend": draw.random() < 0.1,
        }

    def throttle(self):
        rate = self.draw.choice(("1Mi", "4Mi", "16Mi"))
        return self.draw.choice(({"leaderRate": rate, "followerRate": rate},) * 3 + ({"unlimited": True},))

    def with_policies(self, spec):
        """The spec of a new rebalance, with what another class of scenarios adds to it."""
        return spec

    # Users -----------------------------------------------------------------------------------------------------------

    def create(self, namespace="a", same=None, **more):
        """``same``: a spec to take over; ``more``: further fields of the spec."""
        draw = self.draw
        self.made += 1
        name = f"r{self.made}"
        metadata = {"name": name, "namespace": namespace, "uid": f"u-{self.made}"}
        metadata["creationTimestamp"] = self.world.clock.now().isoformat()
        kafka = {"bootstrapServers": self.servers(namespace)}
        if self.world.kube.has_connection and draw.random() < 0.7:
            kafka = {"connectionRef": {"name": "prod", "namespace": "k"}}
        spec = {
            "kafka": kafka,
            **self.spec(),
            "execution": self.execution(),
            "approval": {"policy": draw.choice(("Automatic",) * 5 + ("Manual",))},
            "deletionPolicy": draw.choice(("Rollback",) * 4 + ("Revert", "Abandon")),
        }
        if draw.random() < 0.8:
            spec["throttle"] = self.throttle()
        spec = self.world.kube.copy(same) if same is not None else self.with_policies(spec) | more
        self.world.judge.cap(metadata["uid"], spec["execution"])
        self.world.kube.create(REBALANCES, {"metadata": metadata, "spec": spec})
        return f"{name} is created: {spec}"

    def connection(self):
        """A KafkaConnection to the cluster: it outranks the connections that are written in resources.

        It names their addresses too, which proves that their throttles and cordons are in its cluster.
        """
        kube = self.world.kube
        if (CONNECTIONS, "k", "prod") in kube.resources:
            return None
        metadata = {"name": "prod", "namespace": "k", "uid": "c-1"}
        metadata["creationTimestamp"] = self.world.clock.now().isoformat()
        servers = "kafka-k:9092,kafka-a:9092,kafka-b:9092"
        spec = {"bootstrapServers": servers, "allowedNamespaces": {"from": "All"}}
        kube.create(CONNECTIONS, {"metadata": metadata, "spec": spec})
        return "a KafkaConnection is created"

    def servers(self, namespace):
        """The bootstrap servers of a new resource."""
        return f"kafka-{namespace}:9092"

    def _some(self):
        found = [key for key, body in self.world.rebalances() if "deletionTimestamp" not in body["metadata"]]
        return self.draw.choice(found) if found else None

    def _edit(self, **spec):
        key = self._some()
        if key is None:
            return None
        body = self.world.kube.resources[key]
        if "execution" in spec:
            self.world.judge.cap(body["metadata"]["uid"], spec["execution"])
        self.world.kube.edit(*key, **spec)
        return f"{key[2]} is edited: {spec}"

    def edit_execution(self):
        return self._edit(execution=self.execution())

    def edit_throttle(self):
        return self._edit(throttle=self.throttle())

    def edit_plan(self):
        return self._edit(**self.spec())

    def delete(self):
        key = self._some()
        if key is None:
            return None
        self.world.kube.delete(*key, self.world.clock.now().isoformat())
        return f"{key[2]} is deleted"

    def rename(self):
        """Another resource with the same spec takes over."""
        key = self._some()
        if key is None:
            return None
        spec = self.world.kube.resources[key]["spec"]
        self.world.kube.delete(*key, self.world.clock.now().isoformat())
        return f"{key[2]} is deleted, and {self.create(key[1], spec)}"

    def undo(self):
        done = [key for key, body in self.world.rebalances() if ready(body) == "Succeeded"]
        if not done:
            return None
        key = self.draw.choice(done)
        body = self.world.kube.resources[key]
        order = {UNDO_ANNOTATION: body["status"].get("plan", {}).get("hash", "")}
        at_once(self.world.kube.annotate(*key, body["metadata"]["uid"], order))
        self.world.kube._touch(body)
        return f"undo of {key[2]}"

    def limits(self):
        """A throttle resource is created, edited or deleted."""
        draw, kube = self.draw, self.world.kube
        key = (REASSIGNMENT_THROTTLES, "a", "limits")
        spec = {
            "kafka": {"bootstrapServers": "kafka-a:9092"},
            "leaderRate": "8Mi",
            "followerRate": draw.choice(("2Mi", "8Mi")),
            "freeze": draw.random() < 0.2,
        }
        if draw.random() < 0.5:
            spec["whenReplicationThrottled"] = draw.choice(("Additive", "Lowest"))
        if key not in kube.resources:
            metadata = {"name": "limits", "namespace": "a", "uid": f"k-{self.made}-{int(self.world.loop.now)}"}
            metadata["creationTimestamp"] = self.world.clock.now().isoformat()
            kube.create(REASSIGNMENT_THROTTLES, {"metadata": metadata, "spec": spec})
        elif draw.random() < 0.6:
            kube.edit(*key, **spec)
        elif "deletionTimestamp" not in kube.resources[key]["metadata"]:
            kube.delete(*key, self.world.clock.now().isoformat())
            return "limits are deleted"
        return f"limits {spec}"

    # Kafka -----------------------------------------------------------------------------------------------------------

    def broker_dies(self):
        kafka = self.world.kafka
        if len(kafka.brokers) < 3:
            return None
        broker = self.draw.choice(sorted(kafka.brokers))
        self._dies(broker, seconds := self.draw.choice((1, 8, 20, 200)))
        return f"broker {broker} dies for {seconds} s"

    def _dies(self, broker, seconds):
        self.world.judge.deaths[broker] = self.world.loop.now
        self.world.kafka.die(broker)
        self.world.loop.call_later(seconds, self.world.revive, broker)

    def original_dies(self):
        """A replica that was there before what is in flight; often somebody asks for something else then."""
        kafka, draw = self.world.kafka, self.draw
        flying = [state for _, state in sorted(kafka.states.items()) if state.in_flight]
        originals = sorted({b for state in flying for b in state.isr - set(state.adding)} & set(kafka.brokers))
        if not originals or len(kafka.brokers) < 3:
            return None
        broker = draw.choice(originals)
        self._dies(broker, seconds := draw.choice((20, 90, 200)))
        then = draw.choice((self.delete, self.edit_plan, lambda: None))
        self.world.loop.call_later(draw.choice((0.5, 3)), lambda: self.world.note(f"*** {then()}"))
        return f"broker {broker} dies for {seconds} s in the middle of a copy"

    def broker_is_slow(self):
        broker = self.draw.choice(sorted(self.world.kafka.brokers))
        self.world.kafka.slow = {broker}
        return f"broker {broker} is slow"
