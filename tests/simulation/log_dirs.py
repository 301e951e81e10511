"""Brokers with several log dirs, which copy replicas from one to another byte by byte (KIP-113).

Each rule is a row of "Log dirs" in docs/kafka-behaviour.md; the classes that are named are those of
`tests/contract/test_log_dirs.py` and `tests/contract/test_offline_log_dir.py`.
"""

from collections import Counter

from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.simulation.brokers import MIB, SimulatedKafka

from kafka_rebalance.errors import Permanent
from kafka_rebalance.execution.reassignment_throttle import LOG_DIR_RATE
from kafka_rebalance.kafka.ports import LogDir, LogDirCode

DISK = 100 * MIB
"""Bytes per second that a broker copies between its log dirs without a throttle."""
UNREAD_SECONDS = 1.0
LARGE = 2**40
_DENIED = Permanent("KafkaAuthorizationFailed", "Kafka does not allow us to describe the log dirs")


class KafkaWithLogDirs(SimulatedKafka):
    """``where``: the log dir of each replica; ``future``: that of its future replica, and ``future_bytes`` of it.

    ``offline``: log dirs that their broker has started without.
    """

    def __init__(self, world, brokers, *, line, racks):
        super().__init__(world, brokers, line=line, racks=racks)
        draw = world.log_dir_random
        self.dirs = {b: tuple(f"/data/{name}" for name in "abc"[: draw.choice((1, 2, 3, 3))]) for b in self.brokers}
        self.future_bytes = {}
        self._rate_unread = {}

    # What is read ----------------------------------------------------------------------------------------------------

    def deny(self, *, denied):
        """Refuse DescribeLogDirs, as without the ACL (`test_reading.py::TestRefusals`)."""
        self.dirs_denied = _DENIED if denied else None

    async def log_dirs(self, brokers):
        """Dead brokers are not described (`test_outage.py::TestAround`)."""
        return await KafkaInMemory.log_dirs(self, brokers)

    def _log_dirs_of(self, broker):
        """Those that are online (`TestOffline`), with the future replicas beside the present ones (`TestMove`)."""
        for path in self.dirs[broker]:
            if (broker, path) in self.offline:
                continue
            held = {tp: int(self.held[tp, b]) for (tp, b), at in self.where.items() if (b, at) == (broker, path)}
            coming = self._future_in(broker, path)
            total = self.capacity.get((broker, path), LARGE)
            free = max(0, total - sum(held.values()) - sum(coming.values()))
            yield LogDir(path, held, coming, total, free)

    def _future_in(self, broker, path):
        found = {tp for (tp, b), to in self.future.items() if (b, to) == (broker, path)}
        return {tp: int(self.future_bytes[tp, broker]) for tp in found}

    def taken(self, broker, path):
        """The bytes that the log dir holds when everything on the way there has arrived."""
        here = [
            tp for places in (self.where, self.future) for (tp, b), at in places.items() if (b, at) == (broker, path)
        ]
        return sum(self.bytes_of[tp] for tp in here)

    # Moves -----------------------------------------------------------------------------------------------------------

    async def alter_log_dirs(self, orders):
        """Only live brokers answer (`TestOurClient`)."""
        self.world.judge.log_dirs.ordered(self.by, orders)
        answers = {
            key: self._alter_log_dir(key, path) if key[1] in self.brokers else LogDirCode.UNKNOWN
            for key, path in orders.items()
        }
        self.world.judge.log_dirs.answered(self.by, orders, answers)
        return answers

    def _alter_log_dir(self, key, path):
        """`TestRefused`, `TestOffline`; a replica that is not there yet has its log dir kept (`TestPlacement`)."""
        if (error := self._unknown(key, path)) is not None:
            return error
        broker = key[1]
        if {(broker, path), (broker, self.where.get(key))} & self.offline:
            return LogDirCode.LOG_DIR_OFFLINE
        if key not in self.where:
            self.kept[key] = path
            return LogDirCode.NOT_THERE
        self._request_move(key, path)
        return LogDirCode.OK

    def _request_move(self, key, path):
        """The present log dir cancels the copy, a third one restarts it (`TestMove`).

        Replicas in an offline log dir are not deleted (`TestOffline`).
        """
        future = self.future.get(key)
        if future == path or (key[1], future) in self.offline:
            return
        self._forget_future(key)
        if path != self.where[key]:
            self.future[key], self.future_bytes[key] = path, 0
            self._moves.set()

    def _forget_future(self, key):
        self.future.pop(key, None)
        self.future_bytes.pop(key, None)

    # Replicas come and go --------------------------------------------------------------------------------------------

    def _place(self, tp, broker):
        """In the log dir that was named, or with the fewest replicas (`TestPlacement`) of those online
        (`TestOffline`)."""
        online = [path for path in self.dirs[broker] if (broker, path) not in self.offline]
        count = Counter(at for (_, b), at in self.where.items() if b == broker)
        fewest = min(online, key=lambda path: (count[path], path))
        kept = self.kept.pop((tp, broker), None)
        self.where[tp, broker] = kept if kept in online else fewest

    def _make_partition(self, topic, number, row, size, topic_id):
        super()._make_partition(topic, number, row, size, topic_id)
        for tp, broker in [key for key in self.held if key not in self.where]:
            self._place(tp, broker)

    def _begin(self, tp, state, to):
        for broker in to:
            if broker not in state.replicas and broker in self.brokers:
                self._place(tp, broker)
        super()._begin(tp, state, to)

    def _drop(self, tp, brokers):
        """Both copies of a replica are deleted (`TestMove`)."""
        super()._drop(tp, brokers)
        for broker in brokers:
            self.where.pop((tp, broker), None)
            self._forget_future((tp, broker))

    def delete_topic(self, topic):
        super().delete_topic(topic)
        for key in [key for key in self.where if key[0] not in self.states]:
            self._drop(key[0], [key[1]])

    # Brokers ---------------------------------------------------------------------------------------------------------

    def die(self, broker):
        """It forgets the log dirs that were named (`TestPlacement`)."""
        super().die(broker)
        for key in [key for key in self.kept if key[1] == broker]:
            del self.kept[key]

    def come_back(self, broker, *, missed=True):
        """Moves continue, at first perhaps without the rate (`TestMove`)."""
        super().come_back(broker, missed=missed)
        for tp, b in [key for key in self.held if key[1] == broker and key not in self.where]:
            self._place(tp, b)
        late = self.world.log_dir_random.random() < 0.5
        self._rate_unread[broker] = self.world.loop.now + (UNREAD_SECONDS if late else 0)

    def heal(self):
        """Every broker has all its log dirs, and describes them."""
        super().heal()
        self.deny(denied=False)
        for broker in sorted({b for b, _ in self.offline}):
            self.die(broker)
            self.offline = {row for row in self.offline if row[0] != broker}
            self.come_back(broker)

    def _serves(self, broker, tp):
        """A replica in an offline log dir is not served (`TestOffline`)."""
        return super()._serves(broker, tp) and (broker, self.where.get((tp, broker))) not in self.offline

    # Copies ----------------------------------------------------------------------------------------------------------

    def _copies(self):
        return super()._copies() or bool(self._between_log_dirs())

    def _between_log_dirs(self):
        """The future replicas of live brokers, from and to log dirs that are online."""
        return [
            (tp, broker)
            for (tp, broker), path in self.future.items()
            if self._serves(broker, tp) and (broker, path) not in self.offline
        ]

    def _copy(self, seconds):
        """In parallel to reassignments, whose rates are separate (`TestRate`)."""
        super()._copy(seconds)
        flying = self._between_log_dirs()
        count = Counter(broker for _, broker in flying)
        for key in flying:
            speed = min(DISK, self._rate(key[1])) / count[key[1]]
            self.future_bytes[key] = min(self.held[key], self.future_bytes[key] + speed * seconds)
            if self.future_bytes[key] >= self.held[key]:
                self.where[key] = self.future[key]
                self._forget_future(key)
                self.world.judge.log_dirs.moved(key)

    def _rate(self, broker):
        """One rate for all moves of the broker (`TestRate`)."""
        rate = self._effective(broker, LOG_DIR_RATE)
        unread = self.world.loop.now < self._rate_unread.get(broker, 0)
        return LARGE if rate is None or unread else int(rate)
