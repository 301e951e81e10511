"""What is known of the connections that resources name."""

from types import SimpleNamespace

from kafka_rebalance.api.v1alpha1 import REBALANCES, parse_connection
from kafka_rebalance.model.ownership import Owner
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.connection_book import ConnectionBook
from kafka_rebalance.reconcile.decide.cluster_ownership import Standing
from kafka_rebalance.reconcile.state.rebalance import Rebalance

OWNER = Owner("kafka", "production")


def connection(**spec):
    metadata = {"name": "production", "namespace": "kafka", "uid": "u"}
    return parse_connection({"metadata": metadata, "spec": {"bootstrapServers": "kafka:9092", **spec}})


class TestCapacity:
    def test_of_the_owners_connection(self):
        """As it is now, since it may be edited while the engine runs."""
        book = ConnectionBook()
        known = book.of_owner(OWNER)
        known.resource = connection()
        assert book.capacity_of(OWNER) is None
        known.resource = connection(capacity={"default": {"networkIn": "1Gi"}})
        assert book.capacity_of(OWNER).of(BrokerId(1)).network_in == 2**30

    def test_of_other_owners(self):
        """An inline connection has none, nor a KafkaConnection that does not exist; asking enters nothing."""
        book = ConnectionBook()
        book.of_owner(OWNER).resource = connection(capacity={"default": {"disk": "1Ti"}})
        book.of_owner(Owner("kafka", "deleted"))
        owners = [Owner("kafka"), Owner("kafka", "deleted"), Owner("kafka", "unknown")]
        assert [book.capacity_of(owner) for owner in owners] == [None, None, None]
        assert len(list(book)) == 2


class TestStanding:
    def test_of_a_connection_that_was_deleted(self):
        """Its last settings may be those of an edit, so they count as edited."""
        assert ConnectionBook().standing(OWNER, "c") == Standing(OWNER, named=False, edited=True)


class TestNames:
    def test_a_resource_that_waits_until_its_refusal_is_written(self):
        """It may use the connection by now, and is handed over then. Without its engine it would be lost."""
        book = ConnectionBook()
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-1"}
        rebalance = Rebalance.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}})
        known = book.of(rebalance.desired.spec.kafka, "kafka")
        engine = SimpleNamespace(rebalances={}, throttles={}, wake=lambda: None)
        known.engine, known.may_move, known.rebalances["u-1"] = engine, True, rebalance
        known.busy.add("u-1")
        known.place(rebalance, engine)
        assert book.names(engine)
        known.busy.discard("u-1")
        known.place(rebalance, engine)
        engine.rebalances.clear()  # its deletion was found before the watch told of it
        assert not book.names(engine)


class TestManyResources:
    async def test_an_event_does_not_look_at_all_other_resources(self, world, monkeypatch):
        """A namespace may have thousands: at the start, each of them is an event, before any connection is tried."""
        for number in range(3):
            world.create("a", name=f"r-{number}", kafka={"connectionRef": {"name": f"absent-{number}"}})
        world.see()
        looked = []
        monkeypatch.setattr(ConnectionBook, "__iter__", lambda book: iter(looked.append(book) or ()))
        world.create("a", name="new", kafka={"connectionRef": {"name": "absent-0"}})
        world.see()
        world.gone(REBALANCES, "a", "r-1")
        assert not looked
        monkeypatch.undo()
        left = {
            metadata.name for known in world.supervisor._book for metadata in map(known.metadata_of, known.rebalances)
        }
        assert left == {"r-0", "r-2", "new"}

    def test_a_removed_resource_is_forgotten_wholly(self):
        """Resources that are created and deleted without end do not fill the memory."""
        book = ConnectionBook()
        for number in range(50):
            metadata = {"name": f"r-{number}", "namespace": "kafka", "uid": f"u-{number}"}
            rebalance = Rebalance.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}})
            book.enter_rebalance(book.of(rebalance.desired.spec.kafka, "kafka"), rebalance)
            book.remove(REBALANCES, rebalance.desired.metadata)
        assert (book._entered_in, book._uids) == ({}, {})
