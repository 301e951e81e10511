"""Replaces and deletes ConfigMaps so that a request without an answer cannot undo what a later one has written.

The API server may carry out a request after its client has given it up, also that of an operator which is not the
leader any more. So each replacement and deletion names the version that it is for, and each write makes a new version.
"""

import contextlib
import secrets
from collections.abc import Callable

from kafka_rebalance.api.v1alpha1 import GROUP
from kafka_rebalance.kube.api_errors import NotFound
from kafka_rebalance.kube.objects import Json, KubeObjects

_WRITE = f"{GROUP}/write"
"""Another value in each write. The API server gives no new version to a replacement by the same content."""


class OrderedWrites:
    """The writes of one store. Knows the versions that were read first, or written last, as far as it got answers."""

    def __init__(self, kube: KubeObjects) -> None:
        self._kube = kube
        self._versions: dict[str, str] = {}

    async def put(self, body: Json, check: Callable[[], None] = lambda: None) -> None:
        """Create or replace. Conflict if something else was written meanwhile: the next call reads its version.

        ``check`` is called when it is known which version will be replaced; nothing is written if it raises.
        """
        name = body["metadata"]["name"]
        body = marked(body)
        version = self._versions.pop(name, None) or await self._present_version(name)
        check()
        if version is None:
            written = await self._kube.create_config_map(body)
        else:
            replacing = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
            try:
                written = await self._kube.replace_config_map(name, replacing)
            except NotFound:
                written = await self._kube.create_config_map(body)
        self._versions[name] = written["metadata"]["resourceVersion"]

    async def renew(self, found: Json) -> None:
        """Give what was read a new version, so that requests for the version of before are refused.

        Conflict if something else was written since; no error if it is gone.
        """
        name = found["metadata"]["name"]
        self._versions.pop(name, None)
        with contextlib.suppress(NotFound):
            await self._kube.replace_config_map(name, marked(found))

    async def delete(self, name: str) -> None:
        """Delete that version. Conflict if something else was written meanwhile; no error if there is none."""
        version = self._versions.pop(name, None) or await self._present_version(name)
        if version is not None:
            await self._kube.delete_config_map(name, version)

    def note(self, found: Json) -> None:
        """It was read. What was written since is newer, and stays known."""
        self._versions.setdefault(found["metadata"]["name"], found["metadata"]["resourceVersion"])

    def forget(self, name: str) -> None:
        """It is deleted."""
        self._versions.pop(name, None)

    async def _present_version(self, name: str) -> str | None:
        found = await self._kube.get_config_map(name)
        version: str | None = None if found is None else found["metadata"]["resourceVersion"]
        return version


def marked(body: Json) -> Json:
    """With the mark of a new write, so that the API server gives it a version of its own."""
    annotations = {**body["metadata"].get("annotations", {}), _WRITE: secrets.token_hex(8)}
    return {**body, "metadata": {**body["metadata"], "annotations": annotations}}
