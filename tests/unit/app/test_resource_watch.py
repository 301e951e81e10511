"""The watch thread: a blocked event loop is detected from outside."""

import asyncio
import json
import threading

import kopf
import pytest
from e2e.bench.waiting import wait_until
from kopf._cogs.clients import api
from kopf._cogs.clients.errors import APIForbiddenError, APINotFoundError
from kopf._cogs.clients.watching import Bookmark
from kopf._cogs.structs.references import Resource
from kopf._core.reactor import queueing
from tests.fakes.scripted_api_server import ScriptedApiServer, event, gone, page_of, stored

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, GROUP, REASSIGNMENT_THROTTLES, REBALANCES, VERSION
from kafka_rebalance.app import resource_watch
from kafka_rebalance.app.resource_watch import Watch, login
from kafka_rebalance.kube.object_json import without_ballast

KINDS = (CONNECTIONS, REASSIGNMENT_THROTTLES, REBALANCES)


@pytest.fixture
def kopf_does(monkeypatch):
    """Replaces kopf: the watch thread runs this function instead."""

    def set_to(work):
        async def operator(*, insights, stop_flag, **_):
            insights.watched_resources.update(Resource(GROUP, VERSION, plural) for plural in KINDS)
            await work()
            await asyncio.to_thread(stop_flag.wait)

        monkeypatch.setattr(kopf, "operator", operator)

    return set_to


class TestAge:
    """Seconds since the last heartbeat of the watch's own loop."""

    async def test_none_before_it_begins(self):
        watch = Watch((), print)
        assert watch.age is None
        await watch.stop()

    async def test_young_while_it_turns(self, kopf_does):
        beaten = threading.Event()

        async def three_turns():
            before = watch._beat_at
            await asyncio.to_thread(wait_until, "a beat", lambda: watch._beat_at != before)
            beaten.set()

        kopf_does(three_turns)
        watch = Watch((), print)
        watch.start()
        await watch.ready.wait()
        await asyncio.to_thread(beaten.wait, 240)
        assert beaten.is_set()
        await watch.stop()
        assert not watch.failed.is_set()

    async def test_grows_while_it_stands_still(self, kopf_does):
        """A handler or library that blocks the watch's loop does not block the operator's loop."""
        let_go = threading.Event()

        async def block():
            let_go.wait()  # not awaited: this blocks the loop

        kopf_does(block)
        watch = Watch((), print)
        watch.start()
        await asyncio.to_thread(wait_until, "a beat is left out", lambda: (watch.age or 0) > 1.5)
        let_go.set()
        await asyncio.to_thread(wait_until, "it beats again", lambda: (watch.age or 9) < 0.5)
        await watch.stop()


class TestEvents:
    """What kopf reads reaches the operator's loop."""

    @pytest.fixture
    def reads(self, monkeypatch):
        """These events, of a kind."""

        async def read(watch, resource, *events):
            async def infinite_watch(**_):
                for each in events:
                    yield each

            monkeypatch.setattr(resource_watch, "infinite_watch", infinite_watch)
            return [each async for each in watch._others_events(resource=resource)]

        return read

    async def test_of_a_flood_the_newest_event_of_each_resource_waits(self, reads):
        """Users choose how often they change a resource, and how large it is: only one body of it is in memory."""
        handled = []
        watch = Watch((), lambda plural, body, deleted: handled.append((plural, body["spec"], deleted)))
        events = [event("MODIFIED", stored("limits", version)) for version in range(100)]
        await reads(watch, Resource(GROUP, VERSION, REASSIGNMENT_THROTTLES), *events)
        await asyncio.sleep(0)
        assert handled == [(REASSIGNMENT_THROTTLES, 99, False)]

    async def test_kopf_gets_those_of_other_kinds(self, reads):
        """It looks after CRDs itself. A bookmark of the end of a list is not an event."""
        bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "1"}}}
        events = [event(None, stored("r", 1)), Bookmark.LISTED, event("DELETED", stored("r", 2)), bookmark]
        crds = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert await reads(Watch((), print), crds, *events) == events
        assert await reads(Watch((), print), Resource(GROUP, VERSION, REBALANCES), *events) == [Bookmark.LISTED]

    async def test_none_is_lost_if_kopf_handles_them_itself(self):
        """If a later version of kopf reads with another function, its handlers do the same, only slower."""
        handled = []
        watch = Watch((), lambda plural, body, deleted: handled.append((plural, body["spec"], deleted)))
        watch._handler(REBALANCES)(event=event("DELETED", stored("r", 1)))
        await asyncio.sleep(0)
        assert handled == [(REBALANCES, 1, True)]

    async def test_none_is_lost_or_late_when_it_stops(self, kopf_does, reads):
        """After the watch has stopped, nothing starts engines again."""
        handled = []
        events = [event(kind, stored(str(number), 1)) for number in range(50) for kind in ("ADDED", "DELETED")]

        async def pass_on():
            await reads(watch, Resource(GROUP, VERSION, REASSIGNMENT_THROTTLES), *events)

        kopf_does(pass_on)
        watch = Watch((), lambda _, body, deleted: handled.append((deleted, body["metadata"]["uid"])))
        watch.start()
        await watch.stop()
        gone = [uid for deleted, uid in handled if deleted]
        assert gone == [str(number) for number in range(50)]
        before = len(handled)
        await asyncio.sleep(0)
        assert len(handled) == before


@pytest.mark.parametrize("namespaces", [(), ("kafka",)], ids=["all namespaces", "single namespaces"])
class TestKopf:
    """kopf itself lists and watches every kind."""

    @pytest.fixture
    def added(self, monkeypatch):
        """Name, version and whether it was deleted, of all events in their order; by plural."""
        added = {plural: [] for plural in KINDS}

        class Waiting(resource_watch.WaitingEvents):
            def add(self, event):
                metadata = event.body["metadata"]
                added[event.plural].append((metadata["name"], metadata["resourceVersion"], event.deleted))
                super().add(event)

        monkeypatch.setattr(resource_watch, "WaitingEvents", Waiting)
        return added

    @pytest.fixture
    def watching(self, monkeypatch):
        """What a watch of this API server has passed on by plural and name, when it has handed over an event."""

        async def watched(server, namespaces, last):
            seen, done = {}, asyncio.Event()

            def see(plural, body, deleted):
                seen[plural, body["metadata"]["name"]] = (body["spec"], deleted)
                if all(seen.get((plural, last[0])) == last[1:] for plural in KINDS):
                    done.set()

            async with server.served() as address:
                monkeypatch.setattr(resource_watch, "login", lambda **_: kopf.ConnectionInfo(server=address))
                watch = Watch(namespaces, see)
                watch.start()
                waits = [asyncio.create_task(each.wait()) for each in (done, watch.failed)]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED, timeout=240)
                for each in waits:
                    each.cancel()
                await watch.stop()
            assert done.is_set()
            assert not watch.failed.is_set()
            return seen

        return watched

    async def test_hands_over_all_events_in_order_and_handles_none(self, monkeypatch, namespaces, added, watching):
        """One namespace may change its resources a thousand times a second. kopf would handle each in the same loop.

        Lists come before the events after them. When a watch ends, the next one begins at the last version.
        """

        async def worker(**_):
            raise AssertionError("kopf itself handles an event")

        monkeypatch.setattr(queueing, "worker", worker)
        pages = [page_of(stored("a", 1), version=1, more="b"), page_of(stored("b", 1), version=1)]
        first = [event("MODIFIED", stored("a", 2)), event("BOOKMARK", {"metadata": {"resourceVersion": "3"}})]
        first += [event("ADDED", stored("c", 4)), event("DELETED", stored("b", 5))]
        server = ScriptedApiServer(
            [*pages, page_of(stored("a", 6), version=6)],
            [first, [event("ERROR", gone())], [event("DELETED", stored("a", 7))]],
        )
        seen = await watching(server, namespaces, ("a", 7, True))
        expected = [("a", "1", False), ("b", "1", False), ("a", "2", False), ("c", "4", False), ("b", "5", True)]
        expected += [("a", "6", False), ("a", "7", True)]
        for plural in KINDS:
            assert added[plural] == expected
            assert seen[plural, "b"] == (5, True)
            assert seen[plural, "c"] == (4, False)
            assert server.since[plural][:3] == ["1", "5", "6"]

    async def test_lists_again_if_a_version_is_gone(self, monkeypatch, namespaces, added, watching):
        """HTTP 410 for the second page of a list does not end the operator."""
        monkeypatch.setattr(resource_watch, "_AGAIN_SECONDS", 0.01)
        half = page_of(stored("a", 1), version=1, more="b")
        whole = [page_of(stored("a", 2), version=2, more="b"), page_of(stored("b", 2), version=2)]
        server = ScriptedApiServer([half, gone(), *whole], [[event("MODIFIED", stored("b", 3))]])
        await watching(server, namespaces, ("b", 3, False))
        for plural in KINDS:
            assert added[plural] == [("a", "1", False), ("a", "2", False), ("b", "2", False), ("b", "3", False)]
            assert server.since[plural][0] == "2"


class TestEnd:
    """Of kopf, by itself."""

    @pytest.mark.parametrize("error", [APINotFoundError, APIForbiddenError])
    async def test_says_whether_a_kind_is_gone(self, kopf_does, error):
        async def end():
            raise error(None, status=0, headers={})

        kopf_does(end)
        watch = Watch((), print)
        watch.start()
        await watch.failed.wait()
        assert watch.kind_gone is (error is APINotFoundError)
        await watch.stop()


class TestLogin:
    ACCOUNT = kopf.ConnectionInfo(server="https://kubernetes.default.svc", token="secret")

    @pytest.fixture(autouse=True)
    def in_a_pod(self, monkeypatch):
        monkeypatch.setattr(kopf, "login_with_kubeconfig", lambda **_: None)
        monkeypatch.setattr(kopf, "login_with_service_account", lambda **_: self.ACCOUNT)
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    @pytest.mark.parametrize(
        ("host", "server"), [("10.96.0.1", "https://10.96.0.1:6443"), ("fd00::1", "https://[fd00::1]:6443")]
    )
    def test_needs_no_dns(self, monkeypatch, host, server):
        """The watch works in a Pod without DNS; IPv6 addresses are in brackets."""
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
        found = login()
        assert (found.server, found.token) == (server, "secret")

    def test_a_kubeconfig_comes_first(self, monkeypatch):
        """A kubeconfig takes precedence over the service account."""
        other = kopf.ConnectionInfo(server="https://elsewhere")
        monkeypatch.setattr(kopf, "login_with_kubeconfig", lambda **_: other)
        assert login() is other


async def test_what_kopf_reads(kopf_does, monkeypatch):
    """Neither in lists nor in events metadata that the operator does not read: users choose its size.

    Pages are read in other threads than kopf's, which would have no beat meanwhile.
    """
    monkeypatch.setattr(api, "get", api.get)
    monkeypatch.setattr(api, "json", api.json)
    metadata = {"name": "r", "finalizers": ["f"]}
    stored = {"kind": "KafkaRebalance", "metadata": {**metadata, "labels": {"l": "x"}, "managedFields": [{"f:a": {}}]}}
    page = {"apiVersion": "v1", "items": [stored, stored], "kind": "L", "metadata": {"resourceVersion": "1"}}
    read, read_in = [], []

    def keep(body):
        read_in.append(threading.current_thread().name)
        return without_ballast(body)

    class Answer:
        async def __aenter__(self):
            return self

        async def __aexit__(self, *_):
            pass

        async def read(self):
            return json.dumps(page, separators=(",", ":")).encode()

    async def request(**_):
        return Answer()

    async def look():
        with monkeypatch.context() as patched:
            patched.setattr(resource_watch, "without_ballast", keep)
            read.append(await api.get(url="", settings=None, logger=None))
        read.append(api.json.loads(json.dumps({"type": "ADDED", "object": stored})))

    monkeypatch.setattr(api, "request", request)
    kopf_does(look)
    watch = Watch((), print)
    watch.start()
    await watch.ready.wait()
    await watch.stop()
    kept = {"kind": "KafkaRebalance", "metadata": metadata}
    assert len(read_in) == 2
    assert "kopf" not in read_in
    assert read == [{**page, "items": [kept, kept]}, {"type": "ADDED", "object": kept}]


@pytest.mark.parametrize("namespaces", [(), ("kafka",)])
async def test_how_many_objects_kopf_reads_at_once(monkeypatch, namespaces):
    """It keeps a page of a list in memory, and an object may have 1.5 MB."""
    given = []

    async def operator(*, settings, **_):
        given.append(settings.watching.chunk_size)

    monkeypatch.setattr(kopf, "operator", operator)
    watch = Watch(namespaces, print)
    watch.start()
    await watch.failed.wait()
    await watch.stop()
    assert given == [20]
