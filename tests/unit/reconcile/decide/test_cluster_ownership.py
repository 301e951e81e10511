"""A cluster belongs to the owner on record, unless a KafkaConnection outranks it or its binding has ended."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.reconcile.decide.cluster_ownership import Standing, refusal_at_once, refusal_of_claim

OLD, NEW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)


def inline(namespace, *, named=True):
    return Standing(Owner(namespace), named)


def connection(name, created=OLD, *, named=True, edited=False, moved=False):
    return Standing(Owner("k", name), named, created if named else None, edited, moved)


@pytest.mark.parametrize(
    ("claimant", "holder", "work", "refused"),
    [
        (inline("a"), inline("a"), True, None),
        (inline("a"), inline("b"), True, "ClusterOwnedElsewhere"),
        (inline("a"), inline("b"), False, "ClusterOwnedElsewhere"),
        (inline("a"), inline("b", named=False), True, "ClusterOwnedElsewhere"),
        (inline("a"), inline("b", named=False), False, None),
        (inline("a"), connection("p"), False, "ClusterOwnedElsewhere"),
        (inline("a"), connection("p", named=False), True, "ClusterOwnedElsewhere"),
        (inline("a"), connection("p", named=False), False, None),
        (connection("p"), inline("b"), True, None),
        (connection("p", edited=True), inline("b"), False, "Conflicted"),
        (connection("p", edited=True), inline("b", named=False), True, "Conflicted"),
        (connection("p", moved=True), inline("b", named=False), True, "Conflicted"),
        (connection("p", edited=True), inline("b", named=False), False, None),
        (connection("p"), inline("b", named=False), True, None),
        (connection("p", OLD), connection("q", NEW), False, "Conflicted"),
        (connection("p", OLD), connection("q", NEW), True, "Conflicted"),
        (connection("p", OLD, edited=True), connection("q", NEW), False, "Conflicted"),
        (connection("p", OLD, edited=True), connection("q", named=False), True, "Conflicted"),
        (connection("p", OLD, edited=True), connection("q", named=False), False, None),
        (connection("p", moved=True), inline("b"), False, "Conflicted"),
        (connection("p", OLD, moved=True), connection("q", NEW), False, "Conflicted"),
        (connection("p", OLD, moved=True), connection("q", named=False), True, "Conflicted"),
        (connection("p", NEW), connection("q", OLD), False, "Conflicted"),
        (connection("p", NEW), connection("q", named=False), True, "Conflicted"),
        (connection("p", NEW), connection("q", named=False), False, None),
        (connection("q", OLD), connection("p", OLD), False, "Conflicted"),
        (connection("p", named=False), connection("q"), True, "ClusterOwnedElsewhere"),
        (connection("p", named=False), inline("a"), True, "ClusterOwnedElsewhere"),
    ],
)
def test_who_is_refused(claimant, holder, work, refused):
    """``named``: the owner's resources are there, or its KafkaConnection; ``work``: something is not ended."""
    found = refusal_of_claim(
        claimant, Binding("c", holder.owner), holder, work=work, running=False, proved=False, confirmed=False
    )
    assert (found and found.reason) == refused


@pytest.mark.parametrize(
    ("claimant", "holder", "refused"),
    [
        (inline("a"), connection("p"), True),
        (inline("a"), inline("b"), True),
        (inline("a"), inline("a"), False),
        (inline("a"), inline("b", named=False), False),
        (inline("a"), connection("p", named=False), False),
        (connection("p"), inline("b"), False),
        (connection("p"), connection("q"), False),
        (connection("p", named=False), connection("q"), False),
    ],
)
def test_who_is_refused_at_once(claimant, holder, refused):
    """Only who is refused with the same words whatever else is known."""
    binding = Binding("c", holder.owner)
    found = refusal_at_once(claimant, binding, holder)
    assert (found is not None) is refused
    if found is not None:
        known = [(work, running, proved) for work in (0, 1) for running in (0, 1) for proved in (0, 1)]
        later = {
            str(
                refusal_of_claim(
                    claimant, binding, holder, work=bool(w), running=bool(r), proved=bool(p), confirmed=False
                )
            )
            for w, r, p in known
        }
        assert later == {str(found)}


def test_a_cluster_without_a_binding():
    """The first one gets it."""
    assert (
        refusal_of_claim(inline("a"), None, inline("b"), work=False, running=False, proved=False, confirmed=False)
        is None
    )


@pytest.mark.parametrize(
    ("claimant", "holder", "refused"),
    [
        (inline("a"), inline("b", named=False), "ClusterOwnedElsewhere"),
        (connection("p"), inline("b"), None),
    ],
)
def test_while_an_engine_works_there(claimant, holder, refused):
    """The engine is stopped only for a KafkaConnection."""
    found = refusal_of_claim(
        claimant, Binding("c", holder.owner), holder, work=False, running=True, proved=False, confirmed=False
    )
    assert (found and found.reason) == refused


@pytest.mark.parametrize(
    ("claimant", "holder", "work", "refused"),
    [
        (connection("p", edited=True), inline("b"), True, None),
        (connection("p", edited=True), inline("b", named=False), True, None),
        (connection("p", OLD), connection("q", NEW), False, None),
        (connection("p", OLD), connection("q", NEW, edited=True), False, None),
        (connection("p", OLD), connection("q", NEW), True, "Conflicted"),
        (connection("p", OLD, edited=True), connection("q", NEW), False, "Conflicted"),
        (connection("p", OLD, edited=True), connection("q", named=False), True, "Conflicted"),
        (connection("p", OLD, edited=True), connection("q", named=False), False, None),
        (connection("p", moved=True), inline("b"), True, None),
        (connection("p", OLD, moved=True), connection("q", NEW), False, "Conflicted"),
        (connection("p", OLD), connection("q", NEW, moved=True), False, None),
        (connection("p", OLD, moved=True), connection("q", named=False), True, "Conflicted"),
        (connection("p", OLD, moved=True), connection("q", named=False), False, None),
        (connection("p", NEW), connection("q", named=False), True, None),
        (connection("p", NEW), connection("q", OLD), False, "Conflicted"),
        (inline("a"), inline("b"), False, "ClusterOwnedElsewhere"),
    ],
)
def test_where_both_are_known_to_lead_to_the_cluster(claimant, holder, work, refused):
    """A server that only claims the id takes nothing away then.

    Nor does an edit, or brokers that have led to another cluster, take work of a KafkaConnection.
    """
    found = refusal_of_claim(
        claimant, Binding("c", holder.owner), holder, work=work, running=True, proved=True, confirmed=False
    )
    assert (found and found.reason) == refused


def test_an_administrator_confirms_the_servers_of_an_edited_one():
    """While the former KafkaConnection exists, it keeps the cluster all the same."""
    claimant, known = connection("p", OLD, edited=True), {"running": True, "proved": True, "confirmed": True}
    for former, refused in ((connection("q", named=False), None), (connection("q", NEW), "Conflicted")):
        found = refusal_of_claim(claimant, Binding("c", former.owner), former, work=True, **known)
        assert (found and found.reason) == refused


@pytest.mark.parametrize(("holder", "refused"), [(connection("p", named=False), False), (connection("p"), True)])
def test_an_administrator_confirms_inline_connections(holder, refused):
    """The message about the work of a KafkaConnection that does not exist has this advice."""
    sure = {"proved": True, "confirmed": True}
    found = refusal_of_claim(inline("a"), Binding("c", holder.owner), holder, work=True, running=False, **sure)
    assert bool(found) is refused


@pytest.mark.parametrize(
    ("uids", "moved"),
    [
        ((), False),
        (("u-1",), True),
        (("u-0",), False),
        (("",), True),
        (("u-0", ""), True),
    ],
    ids=["none", "its own", "of an earlier one", "of an earlier version", "of both"],
)
def test_a_binding_of_another_cluster_shows_that_it_has_moved(uids, moved):
    """Earlier versions do not record the uid: such a binding may be of this KafkaConnection."""
    former = [Binding("d", Owner("k", "p"), uid=uid) for uid in uids]
    claimant = Standing(Owner("k", "p"), created=OLD, uid="u-1")
    assert claimant.after(former).moved is moved
    assert replace(claimant, moved=True).after(former).moved
