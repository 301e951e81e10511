"""An API server without resources whose discovery does not list our kinds until a test says so."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, GROUP, REASSIGNMENT_THROTTLES, REBALANCES, VERSION

VERBS = ["get", "list", "patch", "watch"]


class LaggingDiscovery:
    """``plurals``: what discovery lists. ``watched``: the kinds of all watches that were started."""

    def __init__(self) -> None:
        self.plurals = [CONNECTIONS, REASSIGNMENT_THROTTLES, REBALANCES]
        self.watched: list[str] = []
        self._ended = asyncio.Event()

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        """Its address, while the context is open."""
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            self._ended.set()
            await runner.cleanup()

    def page(self, plural: str) -> dict[str, Any]:
        """What a list of the kind answers; a Status is answered with its code."""
        return {"metadata": {"resourceVersion": "1"}, "items": []}

    def events(self, plural: str, since: str) -> Iterable[dict[str, Any]] | None:
        """What a watch from this version on answers before it ends. None: nothing, and it does not end."""
        return None

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        groups = {"apiextensions.k8s.io/v1": ["customresourcedefinitions"], f"{GROUP}/{VERSION}": self.plurals}
        path = request.path
        if path == "/api":
            return web.json_response({"versions": ["v1"]})
        if path == "/apis":
            return web.json_response({"groups": [_group(name) for name in groups]})
        if path == "/api/v1":
            return web.json_response({"resources": [_resource("namespaces"), _resource("events")]})
        if path.removeprefix("/apis/") in groups:
            found = groups[path.removeprefix("/apis/")]
            return web.json_response({"resources": [_resource(plural) for plural in found]})
        plural = path.split("/")[-1]
        if "watch" not in request.query:
            page = self.page(plural)
            return web.json_response(page, status=page.get("code", 200))
        self.watched.append(plural)
        events = self.events(plural, request.query["resourceVersion"])
        stream = web.StreamResponse()
        await stream.prepare(request)
        for event in events or ():
            await stream.write(json.dumps(event).encode() + b"\n")
        if events is None:
            # Not without end: aiohttp forgets a request whose client has gone, and its task would stay.
            await self._ended.wait()
        return stream


def _group(name: str) -> dict[str, object]:
    group, _, version = name.partition("/")
    return {"name": group, "versions": [{"version": version}], "preferredVersion": {"version": version}}


def _resource(plural: str) -> dict[str, object]:
    singular = plural.removesuffix("s")
    return {"name": plural, "singularName": singular, "kind": singular.title(), "namespaced": True, "verbs": VERBS}
