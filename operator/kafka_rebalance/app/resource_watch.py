"""Watches our resources with kopf. kopf never writes to the objects.

kopf lists and watches, and the events of our resources are taken from it as they are read. Its own handling takes a
millisecond for each event, and while one user changes resources all the time, the events of all namespaces would wait
for it. Its timers and change handlers run concurrently with a deletion, add a finalizer and annotations of their own
and react seconds later. kopf runs in a thread with its own loop: in ours it would replace the signal handlers and treat
the engines' tasks as its own when it stops.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import replace
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any

import kopf
from kopf._cogs.clients import api, watching
from kopf._cogs.clients.errors import APIClientError, APINotFoundError
from kopf._cogs.clients.watching import Bookmark, infinite_watch
from kopf._cogs.structs.bodies import RawEvent
from kopf._cogs.structs.references import Insights, Resource

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, GROUP, REASSIGNMENT_THROTTLES, REBALANCES, VERSION
from kafka_rebalance.app.waiting_events import WaitingEvents, WatchEvent
from kafka_rebalance.kube.object_json import read_object_json, without_ballast

log = logging.getLogger(__name__)

_STOP_SECONDS = 10.0
_BEAT_SECONDS = 0.2
_AGAIN_SECONDS = 1.0
_KINDS = (CONNECTIONS, REASSIGNMENT_THROTTLES, REBALANCES)

Seen = Callable[[str, dict[str, Any], bool], None]
"""plural, body, whether it was deleted; called in the operator's loop."""


class Watch:
    """A thread that watches these namespaces, or all if none is given.

    ``ready`` is set, in the operator's loop, when kopf watches every kind for the first time, ``failed`` when it ends
    without having been stopped; ``kind_gone`` then says whether because a kind is no longer served.

    As of the last beat, ``unwatched`` are the kinds that it does not watch, and ``overlooked`` those of them that kopf
    did not find when it read the discovery of the API server, which may lag behind what can be listed.
    """

    def __init__(self, namespaces: Collection[str], seen: Seen) -> None:
        self._namespaces = namespaces
        self._loop = asyncio.get_running_loop()
        self._events = WaitingEvents(self._loop, lambda event: seen(*event))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kopf", daemon=True)
        self._beat_at: float | None = None
        self.ready = asyncio.Event()
        self.failed = asyncio.Event()
        self.kind_gone = False
        self.unwatched = frozenset(_KINDS)
        self.overlooked: frozenset[str] = frozenset()

    @property
    def age(self) -> float | None:
        """Seconds since the last beat of kopf's loop; None before it was started."""
        return None if self._beat_at is None else time.monotonic() - self._beat_at

    def start(self) -> None:
        """Start watching."""
        self._beat_at = time.monotonic()
        self._thread.start()

    async def stop(self) -> None:
        """Stop watching, if it was started; takes at most ten seconds, and then the time to handle what still waits."""
        self._stop.set()
        if self._beat_at is None:
            return
        await asyncio.to_thread(self._thread.join, _STOP_SECONDS)
        await self._events.close()

    def _run(self) -> None:
        try:
            asyncio.run(self._watch())
        except Exception:
            log.exception("the watch ended")

    async def _watch(self) -> None:
        # Before kopf starts: it treats tasks that appear later as its own and waits for their end when it stops.
        insights = Insights()
        beating = asyncio.create_task(self._beat(insights))
        _read_whatever_is_stored()
        watching.infinite_watch = self._others_events
        try:
            await kopf.operator(
                registry=self._registry(),
                settings=_settings(clusterwide=not self._namespaces),
                insights=insights,
                standalone=True,
                clusterwide=not self._namespaces,
                namespaces=list(self._namespaces),
                stop_flag=self._stop,
            )
        except APINotFoundError:
            self.kind_gone = True
        finally:
            if not self._stop.is_set():
                self._loop.call_soon_threadsafe(self.failed.set)
            # kopf waits for this flag in a thread, and the loop does not close before that thread has ended.
            self._stop.set()
            beating.cancel()

    async def _beat(self, insights: Insights) -> None:
        while True:
            self._beat_at = time.monotonic()
            self.unwatched = frozenset(_KINDS) - {resource.plural for resource in insights.watched_resources}
            self.overlooked = self.unwatched if insights.ready_resources.is_set() else frozenset()
            if not self.unwatched and not self.ready.is_set():
                self._loop.call_soon_threadsafe(self.ready.set)
            await asyncio.sleep(_BEAT_SECONDS)

    async def _others_events(self, *, resource: Resource, **options: Any) -> AsyncIterator[Bookmark | RawEvent]:
        """What kopf reads about the resources of a kind, in lists and in events; ours are added to those that wait."""
        async for event in _read_again(resource=resource, **options):
            if isinstance(event, Bookmark) or resource.group != GROUP:
                yield event
            elif event["type"] != "BOOKMARK":
                self._add(resource.plural, event)

    def _add(self, plural: str, event: Any) -> None:
        self._events.add(WatchEvent(plural, dict(event["object"]), deleted=event["type"] == "DELETED"))

    def _registry(self) -> kopf.OperatorRegistry:
        """kopf watches the kinds that have a handler. It calls these only if a later version reads in another way."""
        registry = kopf.OperatorRegistry()

        kopf.on.login(registry=registry)(login)
        for plural in _KINDS:
            kopf.on.event(GROUP, VERSION, plural, registry=registry)(self._handler(plural))
        return registry

    def _handler(self, plural: str) -> Callable[..., None]:
        def handler(event: Any, **_: Any) -> None:
            self._add(plural, event)

        return handler


async def _read_again(*, resource: Resource, **options: Any) -> AsyncIterator[Bookmark | RawEvent]:
    """What kopf reads. It begins with a new list if the API server keeps a version no longer, at which kopf would end.

    A list of many resources may take longer than its version is kept.
    """
    while True:
        try:
            async for event in infinite_watch(resource=resource, **options):
                yield event
        except APIClientError as error:
            if error.status != HTTPStatus.GONE:
                raise
            log.warning("the API server keeps the version of the list of %s no longer: listing again", resource.plural)
            await asyncio.sleep(_AGAIN_SECONDS)
        else:
            return


def login(**kwargs: Any) -> kopf.ConnectionInfo | None:
    """From the kubeconfig, else with the Pod's service account and the address in KUBERNETES_SERVICE_HOST.

    kopf would look the API server up in DNS, which no other client does, our own included.
    """
    found = kopf.login_with_kubeconfig(**kwargs)
    if found is not None:
        return found
    found = kopf.login_with_service_account(**kwargs)
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if found is None or not host:
        return found
    return replace(found, server=f"https://{f'[{host}]' if ':' in host else host}:{port}")


def _read_whatever_is_stored() -> None:
    """Let kopf read objects that are nested too deeply for the standard library, in lists and in events.

    kopf has no setting for this, and terminates when it cannot read such an object. It also gets no metadata that the
    operator does not read: it keeps a page of a list, and the newest event of each object waits.
    """

    async def get(url: str, **options: Any) -> Any:
        async with await api.request(method="get", url=url, **options) as response:
            # A page may have 30 MB. In a thread, because a loop that has no beat for a minute counts as blocked.
            return await asyncio.to_thread(read_object_json, await response.read(), without_ballast)

    def event(text: str) -> Any:
        found = read_object_json(text.encode(), without_ballast)
        return {**found, "object": without_ballast(found["object"])}

    api.get = get
    parser = SimpleNamespace(loads=event)
    api.json = parser  # type: ignore[attr-defined, assignment]


def _settings(*, clusterwide: bool) -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    # Cluster-wide the operator may list CRDs, and so survives one that is deleted and created again; without that
    # permission, scanning costs seconds of refused calls at the start. Namespaces are never listed.
    settings.scanning.disabled = not clusterwide
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 330
    settings.watching.connect_timeout = 10
    # Users may fill each resource up to 1.5 MB, and kopf would read all at once. It lists all kinds at the same time.
    settings.watching.chunk_size = 20
    settings.networking.error_backoffs = [0.5, 1, 2, 4, 8]
    # Not the name of our finalizer: kopf removes its own wherever it does not need it.
    settings.persistence.finalizer = f"{GROUP}/kopf-unused"
    return settings
