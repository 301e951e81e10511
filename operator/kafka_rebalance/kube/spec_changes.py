"""Changes a resource for a command. Not used by the operator.

A change is decided on what was read and written only onto that, so a change by others in between is never overwritten.
A command whose answer was lost may be repeated: it finds that nothing is left to change.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kafka_rebalance.api.v1alpha1 import KINDS
from kafka_rebalance.kube.api_errors import Conflict, NotFound
from kafka_rebalance.kube.objects import Json, KubeObjects

_ATTEMPTS = 10
"""The operator writes the status meanwhile, and each write is a conflict."""


async def change(
    kube: KubeObjects, plural: str, namespace: str, name: str, decide: Callable[[Json], Mapping[str, Any] | None]
) -> Json | None:
    """Merge what ``decide`` makes of the resource into it, and return the new one; None: nothing was to be changed.

    ``decide`` is called again with each newer version, and may refuse it. NotFound; Conflict if others keep writing.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        body = await kube.get(plural, namespace, name)
        if body is None:
            break
        patch = decide(body)
        if patch is None:
            return None
        try:
            written = await kube.patch(plural, namespace, name, patch, body["metadata"]["resourceVersion"])
        except Conflict:
            if attempt == _ATTEMPTS:
                raise
            continue
        if written is None:
            break
        return written
    raise NotFound(f"{KINDS[plural]} {namespace}/{name} not found")
