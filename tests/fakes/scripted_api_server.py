"""An API server whose answers to lists and watches of our kinds are given in advance."""

from collections.abc import Iterable
from typing import Any

from tests.fakes.lagging_discovery import LaggingDiscovery

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REASSIGNMENT_THROTTLES, REBALANCES

Json = dict[str, Any]


class ScriptedApiServer(LaggingDiscovery):
    """Each kind has its own copy of the script. At its end, lists are empty and watches do not end.

    ``since``: the versions from which each kind was watched.
    """

    def __init__(self, pages: Iterable[Json], watches: Iterable[list[Json]]) -> None:
        super().__init__()
        kinds = (CONNECTIONS, REASSIGNMENT_THROTTLES, REBALANCES)
        self._pages = {plural: list(pages) for plural in kinds}
        self._watches = {plural: list(watches) for plural in kinds}
        self.since: dict[str, list[str]] = {plural: [] for plural in kinds}

    def page(self, plural: str) -> Json:
        """The next page or Status."""
        return self._pages[plural].pop(0) if self._pages.get(plural) else super().page(plural)

    def events(self, plural: str, since: str) -> list[Json] | None:
        """Those of the next watch."""
        self.since.setdefault(plural, []).append(since)
        return self._watches[plural].pop(0) if self._watches.get(plural) else None


def page_of(*items: Json, version: int, more: str = "") -> Json:
    """A page of a list."""
    return {"metadata": {"resourceVersion": str(version), "continue": more}, "items": items}


def stored(name: str, version: int) -> Json:
    """A resource."""
    metadata = {"name": name, "namespace": "kafka", "uid": name, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": version}


def event(kind: str, body: Json) -> Json:
    """An event of a watch."""
    return {"type": kind, "object": body}


def gone() -> Json:
    """The Status for a version that the API server does not keep any more."""
    return {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}
