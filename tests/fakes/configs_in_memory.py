"""Throttle configs with the recorded behaviour of brokers, which other tools may change too, and a ledger store."""

from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.execution.reassignment_throttle import LIST_NAMES, REPLICATION_RATES
from kafka_rebalance.kafka.ports import Answers, ConfigOp, ConfigSource, ConfigValue

LONGEST_BYTES = 32_767
TOO_LONG = f"the maximum value size of {LONGEST_BYTES} bytes"
RECORDS_BYTES = 8 * 2**20


class Records:
    """The ledger's store: it survives the operator."""

    def __init__(self, kept=None):
        self.kept = kept

    async def load(self, _cluster_id):
        return self.kept

    async def save(self, _cluster_id, ledger):
        self.kept = ledger

    async def delete(self, _cluster_id):
        self.kept = None


class Killed(Exception):
    """The process died between two calls."""


class Configs:
    """Dynamic configs by topic or broker and name; ``files`` are those from the brokers' files.

    ``calls_left``: the process is killed after this many calls; the last one is still executed. ``silent`` brokers
    do not answer, ``refusing`` ones answer with ``refusal``. ``forbidden``: topics and brokers whose configs we may not
    describe. ``asked``: the brokers of each call, in order. ``late``: stale values to return for these keys. A ``hung``
    controller answers no change; ``resume`` carries them out.
    """

    def __init__(self, before=None, files=None):
        self.values = dict(before or {})
        self.files = dict(files or {})
        self.calls_left = None
        self.silent, self.refusing, self.late = set(), set(), {}
        self.refusal = "_TIMED_OUT"
        self.hung, self.pending = False, []
        self.forbidden = set()
        self.asked = []

    async def topic_configs(self, topics, names):
        self._count()
        readable = [t for t in topics if t not in self.forbidden]
        found = {t: {n: self._read((t, n), ConfigSource.DYNAMIC_TOPIC, "") for n in names} for t in readable}
        return Answers(found, self._errors(self.forbidden.intersection(topics)))

    async def broker_configs(self, brokers, names):
        self._count()
        self.asked.append(tuple(brokers))
        there = [b for b in brokers if b not in self.silent | self.forbidden]
        found = {b: {n: self._read((b, n), ConfigSource.DYNAMIC_BROKER, None) for n in names} for b in there}
        return Answers(found, self._errors(self.forbidden.intersection(brokers)))

    async def alter_topic_configs(self, changes):
        """One string above 32,767 bytes, and the broker drops the connection; 8 MiB of records fail as a whole."""
        self._count()
        if any(len(change.value) > LONGEST_BYTES for wanted in changes.values() for change in wanted):
            raise Transient("KafkaUnreachable", "Broker transport failure")
        if self.hung:
            self.pending.append(changes)
            raise Transient("KafkaUnreachable", "_TIMED_OUT")
        lists = [(topic, change) for topic, wanted in changes.items() for change in wanted]
        if sum(len(self.values.get((topic, c.name), "")) + len(c.value) for topic, c in lists) > RECORDS_BYTES:
            return dict.fromkeys(changes, "UNKNOWN")
        return {topic: self._apply(topic, operations) for topic, operations in changes.items()}

    async def alter_broker_configs(self, changes):
        self._count()
        self.asked.append(tuple(changes))
        answers = dict.fromkeys(self.silent, "_TIMED_OUT") | dict.fromkeys(self.refusing, self.refusal)
        return {b: answers[b] if b in answers else self._apply(b, ops) for b, ops in changes.items()}

    def resume(self):
        """The controller carries out what it was sent while it hung, in order."""
        self.hung = False
        for topic, operations in [item for changes in self.pending for item in changes.items()]:
            self._apply(topic, operations)
        self.pending = []

    def rates(self, broker):
        """Both rates of the broker, leader first."""
        return tuple(self.values.get((broker, name)) for name in REPLICATION_RATES)

    def lists(self, topic):
        """Both lists of the topic, leader first, as sets; None if not set."""
        found = (self.values.get((topic, name)) for name in LIST_NAMES)
        return tuple(None if value is None else set(filter(None, value.split(","))) for value in found)

    def _errors(self, denied):
        why = "Kafka does not allow us to describe"
        return {each: Permanent("KafkaAuthorizationFailed", f"{why} {each}") for each in denied}

    def _count(self):
        if self.calls_left is not None:
            if self.calls_left == 0:
                raise Killed
            self.calls_left -= 1

    def _read(self, key, own, unset):
        value = self.late.get(key, self.values.get(key))
        if value is not None:
            return ConfigValue(value, own)
        if key in self.files:
            return ConfigValue(self.files[key], ConfigSource.STATIC_BROKER)
        return ConfigValue(unset, ConfigSource.DEFAULT)

    def _apply(self, where, operations):
        for change in operations:
            key = (where, change.name)
            now = [item for item in self.values.get(key, "").split(",") if item]
            mine = change.value.split(",")
            if change.op is ConfigOp.DELETE:
                self.values.pop(key, None)
            elif change.op is ConfigOp.SET:
                self.values[key] = change.value
            elif change.op is ConfigOp.APPEND and "*" in now:
                return "INVALID_CONFIG"
            elif change.op is ConfigOp.APPEND:
                longer = ",".join([*now, *(item for item in mine if item not in now)])
                if len(longer) > LONGEST_BYTES:
                    return f"INVALID_CONFIG: it exceeds {TOO_LONG}"
                self.values[key] = longer
            else:
                self.values[key] = ",".join(item for item in now if item not in mine)
        return None
