"""The objects in a directory, for a command beside the run that uses them: a client as `KubeClient` is.

The client submits a change to the run, which has the directory locked. Without a run, the client locks the directory
for the time of the change. A run may start, end or be killed at any moment.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from kafka_rebalance.api.topic_patterns import check_expressions
from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, REBALANCES, parse_rebalance, parse_throttle
from kafka_rebalance.errors import RebalanceError, Refused, Transient
from kafka_rebalance.kube.api_errors import Conflict
from kafka_rebalance.kube.change_requests import ChangeRequest, ChangeRequests
from kafka_rebalance.kube.directory_objects import DirectoryObjects
from kafka_rebalance.kube.merge_patch import merge_patch
from kafka_rebalance.kube.objects import Json
from kafka_rebalance.kube.record_files import RecordFiles
from kafka_rebalance.reasons import Reason

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.05
_LOOKS = 400


class DirectoryClient(DirectoryObjects):
    """Reads beside the run. Refused("RecordsInvalid") if the directory has no records."""

    def __init__(self, directory: Path, now: Callable[[], datetime]) -> None:
        super().__init__(RecordFiles.to_read(directory), now)
        self._directory = directory
        self._requests = ChangeRequests(directory)

    async def patch(
        self, plural: str, namespace: str, name: str, patch: Mapping[str, Any], resource_version: str
    ) -> Json | None:
        """Submit the patch to the run, or apply it here. Refused("InvalidSpec") as by the API server."""
        found = await self.get(plural, namespace, name)
        if found is None:
            return None
        if plural == REBALANCES:
            check_expressions(parse_rebalance(merge_patch(found, patch)).spec.topics)
        elif plural == REASSIGNMENT_THROTTLES:
            parse_throttle(merge_patch(found, patch))
        request = ChangeRequest(plural, namespace, name, resource_version, dict(patch))
        if not await self._carried_out(request):
            return await self.get(plural, namespace, name)
        found = await self.get(plural, namespace, name)
        if found is not None and merge_patch(found, patch) != found:
            raise Conflict(f"{namespace}/{name} has been changed since it was read")
        return found

    async def delete_resource(
        self, plural: str, namespace: str, name: str, uid: str, resource_version: str | None = None
    ) -> bool:
        """Submit the deletion to the run, or delete the resource here."""
        found = await self.get(plural, namespace, name)
        await self._carried_out(ChangeRequest(plural, namespace, name, uid, version=resource_version))
        return found is not None

    async def _carried_out(self, request: ChangeRequest) -> bool:
        """False: applied here. True: the run has taken the request, and may have found it outdated."""
        handed_in = ""
        for _ in range(_LOOKS):
            if (files := await asyncio.to_thread(self._locked)) is not None:
                return await self._done_here(files, request, handed_in)
            if not handed_in:
                handed_in = await asyncio.to_thread(self._requests.hand_in, request)
            elif not self._requests.waits(handed_in):
                return True
            await asyncio.sleep(_LOOK_SECONDS)
        if handed_in and not await asyncio.to_thread(self._requests.remove, handed_in):
            return True
        raise Transient(
            Reason.RUN_DOES_NOT_ANSWER,
            f"the run that uses {self._directory} has not taken the change for {_LOOKS * _LOOK_SECONDS:.0f} seconds, "
            "so nothing was changed: is it stopped, or its disk full?",
        )

    async def _done_here(self, files: RecordFiles, request: ChangeRequest, handed_in: str) -> bool:
        kube = DirectoryObjects(files, self._now)
        try:
            if handed_in and not await asyncio.to_thread(self._requests.remove, handed_in):
                return True
            await carry_out(kube, request)
        finally:
            await kube.close()
        return False

    def _locked(self) -> RecordFiles | None:
        """None: a run has the lock."""
        try:
            return RecordFiles.to_write(self._directory, command=True)
        except Refused as refused:
            if refused.reason == Reason.RECORDS_LOCKED:
                return None
            raise


async def carry_out(kube: DirectoryObjects, request: ChangeRequest) -> None:
    """Change or delete the resource, if it is still the one that was seen. Conflict if not."""
    where = (request.plural, request.namespace, request.name)
    if request.patch is None:
        await kube.delete_resource(*where, request.seen, request.version)
    else:
        await kube.patch(*where, request.patch, request.seen)


async def carry_out_waiting(kube: DirectoryObjects, requests: ChangeRequests) -> None:
    """For the run: apply all requests. Transient("RecordsNotWritten"): the remaining ones stay."""
    for name, request in await asyncio.to_thread(lambda: list(requests.waiting())):
        if request is None:
            log.warning("the request %s is not valid: it is removed", name)
        else:
            await _carry_out_if_possible(kube, name, request)
        await asyncio.to_thread(requests.remove, name)


async def _carry_out_if_possible(kube: DirectoryObjects, name: str, request: ChangeRequest) -> None:
    """A request that fails for another reason than the disk would always fail, and would block later requests."""
    try:
        await carry_out(kube, request)
    except Conflict:
        pass  # the process that asked decides again
    except Transient:
        raise
    except RebalanceError as error:
        log.warning("the request %s is refused, and removed: %s", name, error.message)
    except Exception:
        log.exception("the request %s cannot be applied: it is removed", name)
