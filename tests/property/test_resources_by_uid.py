"""Any watch events: a resource is found by its uid or its name as if all connections were searched."""

from datetime import UTC, datetime, timedelta
from itertools import product

from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from kafka_rebalance.api.connection import KafkaSource
from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, REBALANCES, parse_metadata, parse_throttle
from kafka_rebalance.reconcile.connection_book import ConnectionBook
from kafka_rebalance.reconcile.state.rebalance import Rebalance

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
KINDS = (REBALANCES, REASSIGNMENT_THROTTLES)
NAMES, AGES = "ab", range(3)
EVENTS = st.tuples(
    st.sampled_from(["enter", "move", "forget", "remove", "outlived"]),
    st.sampled_from(KINDS),
    st.sampled_from(NAMES),
    st.sampled_from(AGES),
    st.sampled_from(["kafka-1", "kafka-2"]),
)


def body_of(kind, name, age, server="kafka-1"):
    """Resources of one name that were created one after the other have different uids."""
    created = (NOON + timedelta(minutes=age)).isoformat()
    metadata = {"name": name, "namespace": "k", "uid": f"{kind}-{name}-{age}", "creationTimestamp": created}
    return {"metadata": metadata, "spec": {"kafka": {"bootstrapServers": f"{server}:9092"}}}


class Searched:
    """The book, and what a search through all its connections finds."""

    def __init__(self):
        self.book = ConnectionBook()

    def enter(self, kind, name, age, server):
        body = body_of(kind, name, age, server)
        source = KafkaSource.model_validate(body["spec"]["kafka"])
        connection = self.book.of(source, "k")
        if kind == REBALANCES:
            self.book.enter_rebalance(connection, Rebalance.of(body))
        else:
            self.book.enter_throttle(connection, parse_throttle(body))

    def with_uid(self, kind, uid):
        return [known for known in self.book if uid in (known.rebalances if kind == REBALANCES else known.throttles)]

    def named(self, kind, name):
        """The metadata of all resources of this kind and name."""
        known = [
            *(r.desired.metadata for c in self.book for r in c.rebalances.values() if kind == REBALANCES),
            *(t.metadata for c in self.book for t in c.throttles.values() if kind == REASSIGNMENT_THROTTLES),
        ]
        return [metadata for metadata in known if metadata.name == name]


@examples(10)
@given(st.lists(EVENTS, min_size=4, max_size=30))
def test_as_if_all_connections_were_searched(events):
    """After resources were created, created again under their name, edited, forgotten and deleted."""
    searched = Searched()
    book = searched.book
    for kind, name, age in product(KINDS, NAMES, AGES):
        searched.enter(kind, name, age, "kafka-1")
    for what, kind, name, age, server in events:
        metadata = parse_metadata(body_of(kind, name, age))
        there = searched.with_uid(kind, metadata.uid)
        if what == "enter" and not there:
            searched.enter(kind, name, age, server)
        elif what == "move" and there:
            there[0].forget(metadata.uid)
            searched.enter(kind, name, age, server)
        elif what == "forget" and there:
            there[0].forget(metadata.uid)
        elif what == "remove":
            book.remove(kind, metadata)
        elif what == "outlived":
            others = [other.creation_timestamp for other in searched.named(kind, name) if other.uid != metadata.uid]
            later = [at for at in others if at > metadata.creation_timestamp]
            assert book.outlived(metadata, kind) is bool(later)
            left = [other.creation_timestamp for other in searched.named(kind, name) if other.uid != metadata.uid]
            assert left == later
        for of_kind, of_name, of_age in product(KINDS, NAMES, AGES):
            uid = f"{of_kind}-{of_name}-{of_age}"
            found = book.with_rebalance(uid), book.with_throttle(uid)
            assert found == tuple(next(iter(searched.with_uid(one, uid)), None) for one in KINDS)
    for kind in KINDS:
        for name in NAMES:
            for metadata in searched.named(kind, name):
                book.remove(kind, metadata)
    assert all(not known.rebalances and not known.throttles for known in book)
