"""A problem of one resource does not stop the watch or the work of its connection."""

import pytest
from tests.fakes.shared_clusters import REF

from kafka_rebalance.api.overrides import THROTTLE_OVERRIDE
from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.reconcile import supervisor as supervising
from kafka_rebalance.reconcile.connection_book import NamedConnection

TEXTS = ["[" * 100_000, '{"leaderRate": 1, "until": "9999-12-31T23:59:59-23:59"}']


@pytest.mark.parametrize("text", TEXTS, ids=["deep", "late"])
async def test_a_namespace_that_loses_its_permission(world, text):
    """It is refused, with any annotations of the limits."""
    world.connection()
    limits = world.create("a", name="limits", plural=REASSIGNMENT_THROTTLES, kafka=REF, leaderRate="1Mi")
    limits["metadata"]["annotations"] = {THROTTLE_OVERRIDE: text}
    world.kube.create(REASSIGNMENT_THROTTLES, limits)
    world.create("b", kafka=REF, suspend=True)
    world.see()
    await world.until(lambda: world.state("b") == "Suspended")
    world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "Same"})
    await world.until(lambda: world.state("b") == "ConnectionNotPermitted")
    await world.until(lambda: world.state("a", "limits", REASSIGNMENT_THROTTLES) == "ConnectionNotPermitted")


async def test_a_throttle_that_cannot_be_handed_over(world, monkeypatch):
    """Its status reports the error, and its connection still handles the other resources."""
    place = NamedConnection.place_throttles

    def fails(connection, throttles, engine):
        if any(throttle.name == "a/limits" for throttle in throttles.values()):
            raise OverflowError("date value out of range")
        place(connection, throttles, engine)

    monkeypatch.setattr(NamedConnection, "place_throttles", fails)
    world.connection(names=["a", "b", "c"])
    world.create("a", name="limits", plural=REASSIGNMENT_THROTTLES, kafka=REF, leaderRate="1Mi")
    world.create("b", kafka=REF, suspend=True)
    world.create("c", name="limits", plural=REASSIGNMENT_THROTTLES, kafka=REF, leaderRate="1Mi")
    world.see()
    await world.until(lambda: world.state("b") == "Suspended")
    await world.until(lambda: world.state("a", "limits", REASSIGNMENT_THROTTLES) == "InternalError")
    await world.until(lambda: world.state("c", "limits", REASSIGNMENT_THROTTLES) not in {"", "InternalError"})
    world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"names": ["a"]})
    await world.until(lambda: world.state("b") == "ConnectionNotPermitted")


@pytest.mark.parametrize("plural", [REBALANCES, REASSIGNMENT_THROTTLES, CONNECTIONS])
async def test_an_object_that_cannot_be_taken_in(world, monkeypatch, plural):
    """At the first list of all resources, and in an event."""
    parse = supervising.parse_metadata

    def fails(body):
        if body["metadata"]["name"] == "bad":
            raise RecursionError("maximum recursion depth exceeded")
        return parse(body)

    monkeypatch.setattr(supervising, "parse_metadata", fails)
    if plural == CONNECTIONS:
        bad = world.connection("a", name="bad", see=False)
    else:
        bad = world.create("a", name="bad", plural=plural)
    world.create("b", suspend=True)
    await world.supervisor.know([])
    world.supervisor.seen(plural, bad, deleted=False)
    await world.until(lambda: world.state("b") == "Suspended")
    await world.until(lambda: world.state("a", "bad", plural) == "InternalError")
    assert "unexpected error, see the operator's log" in world.ready("a", "bad", plural)[1]
