"""Answers are plain JSON of the declared types. Everything else is refused."""

import json
import pickle
from dataclasses import replace

import pytest

from kafka_rebalance.errors import Permanent, Refused, Transient
from kafka_rebalance.kafka.isolated import frames, reply_format
from kafka_rebalance.kafka.isolated.frames import Kind
from kafka_rebalance.kafka.isolated.reply_format import ORDERS, READS, ReadAnswer, read_error, written, written_error
from kafka_rebalance.kafka.ports import (
    AlterCode,
    Answers,
    AuthorizedOperations,
    ClusterInfo,
    ConfigSource,
    ConfigValue,
    LogDir,
    LogDirCode,
    OffsetRange,
    Reassignment,
)
from kafka_rebalance.model.kafka_version import KafkaVersion
from kafka_rebalance.model.topology import Broker, BrokerId, PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason

TP = TopicPartition("a,b.c", 3)
DENIED = Permanent(Reason.KAFKA_AUTHORIZATION_FAILED, "no")
STATE = PartitionState(TP, "id", (1, 2), frozenset({1}), None, (3,), (2,))
ANSWERS = {
    "describe_cluster": ClusterInfo("c", {BrokerId(1): Broker(BrokerId(1), None, "h", 9)}, KafkaVersion(30, None)),
    "describe_partitions": Answers({TP: STATE}, {"t": DENIED}),
    "topic_ids": Answers({"t": "id"}, {"u": DENIED}),
    "list_reassignments": {TP: Reassignment((1, 2), (1,), ())},
    "topic_configs": Answers({"t": {"x": ConfigValue(None, ConfigSource.DEFAULT)}}, {"u": DENIED}),
    "broker_configs": Answers({BrokerId(1): {"x": ConfigValue("1", ConfigSource.DYNAMIC_BROKER)}}, {2: DENIED}),
    "log_dirs": Answers({BrokerId(1): (LogDir("/d", {TP: 5}, {TP: 2}, 10, 3), LogDir("/e"))}, {2: DENIED}),
    "offsets": {TP: OffsetRange(1, 2**40, None, 1.5)},
    "committed_offsets": Answers({"g": {TP: 7}}, {"h": DENIED}),
    "authorized_operations": AuthorizedOperations(frozenset({"Alter"}), {"t": frozenset()}, frozenset({"u"})),
    "alter_reassignments": {TP: AlterCode.IN_FLIGHT},
    "elect_preferred": {TP: AlterCode.OK},
    "alter_log_dirs": {(TP, BrokerId(1)): LogDirCode.NOT_THERE},
    "alter_topic_configs": {"t": None, "u": "INVALID_CONFIG: no"},
    "alter_broker_configs": {BrokerId(1): None},
}
REPLICAS = {TopicPartition("t", number): number for number in range(20_000)}
LONG_VALUES = {
    "log_dirs": Answers(
        {BrokerId(1): (LogDir("/a", REPLICAS, {}, 5, 4), LogDir("/b", {}, REPLICAS)), BrokerId(2): ()}, {}
    ),
    "committed_offsets": Answers({"g": REPLICAS, "h": {}}, {}),
}


def read(method, pieces):
    answer = ReadAnswer(method)
    for kind, content in pieces:
        if kind == Kind.ANSWER:
            return answer.ended(content)
        add = answer.add_errors if kind == Kind.ERRORS else answer.add_rows
        add(content)
    raise AssertionError("no end")


def types_in(value):
    """The classes of a value and of all that it contains."""
    if isinstance(value, dict):
        parts = [*value, *value.values()]
    elif isinstance(value, list | tuple | frozenset):
        parts = list(value)
    else:
        parts = [getattr(value, name) for name in getattr(value, "__slots__", ())]
    return {type(value)}.union(*map(types_in, parts))


class TestAnswers:
    def test_every_method_of_the_port_has_one_here(self):
        assert ANSWERS.keys() == READS | ORDERS

    @pytest.mark.parametrize("method", ANSWERS)
    def test_are_the_same_on_the_other_side(self, method):
        """Values and classes are equal, so that callers see no difference."""
        found = read(method, written(method, ANSWERS[method]))
        assert found == ANSWERS[method]
        assert types_in(found) == types_in(ANSWERS[method])

    def test_their_errors_too(self):
        found = read("log_dirs", written("log_dirs", ANSWERS["log_dirs"]))
        ((broker, error),) = found.errors.items()
        assert (broker, type(error), error.reason, error.message) == (2, Permanent, DENIED.reason, "no")

    def test_long_ones_come_in_pieces(self):
        """Reading a piece keeps the lock of the interpreter."""
        answer = {TopicPartition("t", number): Reassignment((1,), (), ()) for number in range(2_500)}
        pieces = list(written("list_reassignments", answer))
        assert [kind for kind, _ in pieces] == [Kind.ROWS] * 3 + [Kind.ANSWER]
        assert read("list_reassignments", pieces) == answer

    @pytest.mark.parametrize("method", LONG_VALUES)
    def test_so_do_long_values(self, method):
        """A server may claim one broker with very many replicas, or one group with very many offsets."""
        pieces = list(written(method, LONG_VALUES[method]))
        assert len(pieces) > 20
        assert max(len(content) for _, content in pieces) < 64 * 1024
        found = read(method, pieces)
        assert found == LONG_VALUES[method]
        assert types_in(found) == types_in(LONG_VALUES[method])

    def test_short_values_share_pieces(self):
        answer = Answers({f"g{number}": {TP: number} for number in range(2_500)}, {})
        assert len(list(written("committed_offsets", answer))) == 4

    def test_brokers_with_many_log_dirs_come_in_pieces(self):
        """Each takes time to check, also without replicas."""
        answer = Answers({BrokerId(b): tuple(LogDir(f"/{n}") for n in range(100)) for b in range(30)}, {})
        pieces = list(written("log_dirs", answer))
        assert len(pieces) == 4
        assert read("log_dirs", pieces) == answer

    def test_all_pieces_count(self, monkeypatch):
        pieces = list(written("alter_topic_configs", {f"t{number}": "x" * 50 for number in range(2_500)}))
        monkeypatch.setattr(frames, "LONGEST_ANSWER", len(pieces[0][1]) + 10)
        with pytest.raises(ValueError, match="longer"):
            read("alter_topic_configs", pieces)


class Ran:
    def __reduce__(self):
        return (pytest.fail, ("executed",))


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        "content",
        [
            pickle.dumps(Ran()),
            b"",
            b"[",
            b"{}",
            b'[["t", 1]]',
            b'[[["t", 1], {"replicas": ["x"], "adding": [], "removing": []}]]',
            json.dumps([[["t", 1], {"__class__": "os.system"}]]).encode(),
            b"[" * 100_000,
        ],
    )
    def test_rows_of_another_type(self, content):
        with pytest.raises(ValueError, match="validation error"):
            ReadAnswer("list_reassignments").add_rows(content)

    def test_rows_where_there_are_none(self):
        with pytest.raises(ValueError, match="none"):
            ReadAnswer("describe_cluster").add_rows(b"[]")

    @pytest.mark.parametrize(
        "error", [["SystemExit", "Conflict", "m", 1], ["Transient", "NoReason", "m", 1], ["Refused"]]
    )
    def test_errors_that_are_not_ours(self, error):
        with pytest.raises(ValueError, match=r"no known class|is not a valid|validation error"):
            read_error(json.dumps(error).encode())


def claimed(more):
    """Answers at each limit, or above it by ``more``."""
    brokers = {BrokerId(b): Broker(BrokerId(b)) for b in range(1_500 + more)}
    replicas = tuple(range(100 + more))
    return {
        "brokers": ("describe_cluster", ClusterInfo("c", brokers)),
        "replicas of": ("describe_partitions", Answers({TP: replace(STATE, replicas=replicas)})),
        "replicas": ("list_reassignments", {TP: Reassignment((1,), replicas, ())}),
        "log dirs of": ("log_dirs", Answers({BrokerId(1): tuple(LogDir(f"/{n}") for n in range(100 + more))})),
        "replicas of partition": ("list_reassignments", {TP: Reassignment((1,), (), replicas)}),
    }


CLAIMED = claimed(1)


@pytest.mark.parametrize("what", CLAIMED)
class TestLargeClusters:
    def test_are_refused(self, what):
        """The user sees why, and what to do."""
        with pytest.raises(Refused, match=rf"claim .*{what}.*with an inline connection, the limit is .*: use a Kafka"):
            list(written(*CLAIMED[what]))

    def test_at_the_limit_are_not(self, what):
        method, answer = claimed(0)[what]
        assert read(method, written(method, answer)) == answer

    def test_are_not_read_either(self, what, monkeypatch):
        """The process that writes an answer is not trusted."""
        method, answer = CLAIMED[what]
        with monkeypatch.context() as patched:
            patched.setattr(reply_format, "check_size", lambda _: None)
            pieces = list(written(method, answer))
        with pytest.raises(ValueError, match="the limit is"):
            read(method, pieces)


FORGED = "t\n2026-01-01 \x1b[2J"
BAD_TP = TopicPartition(FORGED, 0)
BAD_NAMES = [
    ("describe_cluster", ClusterInfo(FORGED, {})),
    ("describe_cluster", ClusterInfo("c", {BrokerId(1): Broker(BrokerId(1), FORGED)})),
    ("describe_cluster", ClusterInfo("c", {BrokerId(1): Broker(BrokerId(1), None, FORGED, 9)})),
    ("describe_partitions", Answers({BAD_TP: replace(STATE, tp=BAD_TP)})),
    ("topic_ids", Answers({"\u202et": "id"})),
    ("log_dirs", Answers({BrokerId(1): (LogDir(FORGED),)})),
    ("log_dirs", Answers({BrokerId(1): (LogDir("/d", {BAD_TP: 5}),)})),
    ("log_dirs", Answers({BrokerId(1): (LogDir("/d", {}, {BAD_TP: 5}),)})),
    ("describe_partitions", Answers({}, {FORGED: DENIED})),
    ("committed_offsets", Answers({"g": {BAD_TP: 5}})),
    ("authorized_operations", AuthorizedOperations(frozenset({"Alter"}), {FORGED: frozenset()}, frozenset())),
    ("authorized_operations", AuthorizedOperations(frozenset({"Alter"}), {}, frozenset({FORGED}))),
]


@pytest.mark.parametrize(("method", "answer"), BAD_NAMES)
class TestNames:
    """They are shown to people, in terminals too."""

    def test_that_are_not_printable_are_refused(self, method, answer):
        with pytest.raises(Refused, match="characters that are not printable") as refused:
            list(written(method, answer))
        assert refused.value.message.isprintable()

    def test_they_are_not_read_either(self, method, answer, monkeypatch):
        with monkeypatch.context() as patched:
            patched.setattr(reply_format, "check_names", lambda _: None)
            pieces = list(written(method, answer))
        with pytest.raises(ValueError, match="not printable"):
            read(method, pieces)


def long_names(more):
    """Answers with names at the limit, or above it by ``more``."""
    name, path = "n" * (255 + more), "p" * (4096 + more)
    tp = TopicPartition(name, 0)
    return [
        ("describe_cluster", ClusterInfo(name, {})),
        ("describe_cluster", ClusterInfo("c", {BrokerId(1): Broker(BrokerId(1), name)})),
        ("describe_partitions", Answers({tp: replace(STATE, tp=tp)})),
        ("topic_ids", Answers({name: "id"})),
        ("log_dirs", Answers({BrokerId(1): (LogDir("/d", {tp: 5}),)})),
        ("log_dirs", Answers({BrokerId(1): (LogDir(path),)})),
    ]


@pytest.mark.parametrize("number", range(len(long_names(0))))
class TestLongNames:
    """Matching one name with the expressions of a resource takes CPU time that grows with its length."""

    def test_are_refused(self, number):
        with pytest.raises(Refused, match=r"a name of \d+ characters, .*the limit is \d+") as refused:
            list(written(*long_names(1)[number]))
        assert len(refused.value.message) < 300

    def test_at_the_limit_are_not(self, number):
        method, answer = long_names(0)[number]
        assert read(method, written(method, answer)) == answer

    def test_are_not_read_either(self, number, monkeypatch):
        """The process that writes an answer is not trusted."""
        method, answer = long_names(1)[number]
        with monkeypatch.context() as patched:
            patched.setattr(reply_format, "check_names", lambda _: None)
            pieces = list(written(method, answer))
        with pytest.raises(ValueError, match="the limit is"):
            read(method, pieces)


@pytest.mark.parametrize("rack", ["rack\u00a0a", "\u6771\u4eac\u3000\u4e00", "\ue000", "e\u0301"])
def test_other_spaces_and_scripts_are_allowed(rack):
    """A rack may have any name. These characters do not start a line and do not control the terminal."""
    answer = ClusterInfo("c", {BrokerId(1): Broker(BrokerId(1), rack)})
    assert read("describe_cluster", list(written("describe_cluster", answer))).brokers[BrokerId(1)].rack == rack


@pytest.mark.parametrize(
    "bad", ["\x00", "\x1b", "\x7f", "\x85", "\u202e", "\u2066", "\u200b", "\ud800", "\u2028", "\u2029"]
)
def test_what_controls_the_terminal_or_is_not_seen_is_refused(bad):
    """Control characters, marks of direction and others without a width, surrogates, and separators of lines."""
    answer = ClusterInfo("c", {BrokerId(1): Broker(BrokerId(1), f"rack{bad}a")})
    with pytest.raises(Refused, match="characters that are not printable") as refused:
        list(written("describe_cluster", answer))
    assert refused.value.message.isprintable()


class TestPieces:
    def test_of_long_rows_are_short(self):
        """Values of configs may have several 10,000 characters."""
        long = {"x": ConfigValue("1:2," * 8_000, ConfigSource.DYNAMIC_TOPIC)}
        answer = Answers({f"t{number}": long for number in range(300)}, {})
        pieces = list(written("topic_configs", answer))
        assert max(len(content) for _, content in pieces) <= frames.LONGEST_PIECE
        assert read("topic_configs", pieces) == answer

    def test_that_are_too_long_are_not_parsed(self):
        """32 MiB of numbers would take 1.3 GB while they are parsed."""
        with pytest.raises(ValueError, match="a piece of the answer is longer than 2 MiB"):
            ReadAnswer("list_reassignments").add_rows(b"[" + b"7," * 2**20 + b"7]")


class TestManyErrors:
    def test_are_read_in_pieces(self):
        """A server may refuse each of 50,000 topics, with a message of its own: at once, that takes a second."""
        answer = Answers(
            {}, {f"t{number}": Permanent(Reason.KAFKA_AUTHORIZATION_FAILED, "no") for number in range(2500)}
        )
        pieces = list(written("topic_configs", answer))
        assert [kind for kind, _ in pieces] == [Kind.ERRORS] * 3 + [Kind.ANSWER]
        assert pieces[-1][1] == b""
        assert read("topic_configs", pieces).errors.keys() == answer.errors.keys()

    def test_that_are_too_long_are_not_parsed(self):
        """As of rows."""
        with pytest.raises(ValueError, match="a piece of the answer is longer than 2 MiB"):
            ReadAnswer("topic_configs").add_errors(b"[" + b"7," * 2**20 + b"7]")

    def test_in_an_answer_that_has_none(self):
        """As the answers to orders."""
        with pytest.raises(ValueError, match="errors in an answer that has none"):
            ReadAnswer("alter_topic_configs").add_errors(b"[]")


class TestChecks:
    @pytest.mark.parametrize(
        ("method", "answer"),
        [
            ("describe_partitions", Answers({TopicPartition("a\nb", 0): STATE})),
            ("alter_topic_configs", {"a\nb": None}),
            ("committed_offsets", Answers({"g": {TopicPartition("t", 0): 1}, "a\nb": {}})),
        ],
    )
    def test_of_names_are_made_of_each_piece(self, method, answer, monkeypatch):
        """Of the names of 100,000 partitions at the end of the answer, they take 0.3 s of the event loop."""
        with monkeypatch.context() as patched:
            patched.setattr(reply_format, "check_names", lambda _: None)
            (_, rows), *_ = written(method, answer)
        with pytest.raises(ValueError, match="not printable"):
            ReadAnswer(method).add_rows(rows)


class TestErrors:
    @pytest.mark.parametrize(
        "error", [DENIED, Refused(Reason.OTHER_CLUSTER, "m"), Transient(Reason.NOT_LEADING, "m", 7)]
    )
    def test_keep_class_reason_message_and_retry(self, error):
        found = read_error(written_error(error))
        assert (type(found), found.reason, found.message) == (type(error), error.reason, error.message)
        assert getattr(found, "retry_after", None) == getattr(error, "retry_after", None)

    @pytest.mark.parametrize("method", ["alter_broker_configs", "alter_topic_configs"])
    def test_of_single_brokers_and_topics_are_one_line_of_text(self, method):
        """They are shown in the status of a KafkaReassignmentThrottle."""
        key = BrokerId(1) if method == "alter_broker_configs" else "t"
        assert read(method, written(method, {key: "a\nb\x1b[2J"})) == {key: r"a\nb\x1b[2J"}

    def test_are_one_line_of_text(self):
        """The server may have taken over the process of the client."""
        error = json.dumps(["Refused", "OtherCluster", "no\r\n2026 \x1b[2Jmore", 0]).encode()
        assert read_error(error).message == r"no\r\n2026 \x1b[2Jmore"

    @pytest.mark.parametrize(("said", "waited"), [(1e9, 300), (-5, 1)])
    def test_wait_for_a_bounded_time(self, said, waited):
        error = json.dumps(["Transient", "KafkaUnreachable", "x" * 10_000, said]).encode()
        assert (read_error(error).retry_after, len(read_error(error).message)) == (waited, 4_000)
