"""The API server's audit log: which requests of service accounts it has allowed, and which it has refused."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  userGroups: ["system:serviceaccounts:kube-system"]
- level: Metadata
  userGroups: ["system:serviceaccounts"]
"""
"""Requests of service accounts, without those of Kubernetes' own controllers."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request for a resource. ``namespace`` is empty for all namespaces and for cluster-scoped resources.

    ``resource`` contains the subresource: ``kafkarebalances/status``. ``binding`` is the role binding that allowed it,
    empty if the request was refused.
    """

    verb: str
    group: str
    resource: str
    namespace: str
    binding: str


class AuditLog:
    """The requests of an account since this object was created."""

    def __init__(self, path: Path, user: str) -> None:
        self._path = path
        self._user = user
        self._start = path.stat().st_size

    def requests(self) -> set[Request]:
        """All requests so far. The API server logs each before it answers, and a watch when it begins."""
        return set(self._read())

    def _read(self) -> Iterator[Request]:
        with self._path.open("rb") as file:
            file.seek(self._start)
            lines = file.read().split(b"\n")[:-1]  # the last one may be incomplete
        for line in lines:
            event = json.loads(line)
            if event["user"]["username"] != self._user or "objectRef" not in event:
                continue
            about, decided = event["objectRef"], event["annotations"]
            allowed = decided["authorization.k8s.io/decision"] == "allow"
            name = about["resource"]
            yield Request(
                verb=event["verb"],
                group=about.get("apiGroup", ""),
                resource=f"{name}/{about['subresource']}" if "subresource" in about else name,
                namespace=about.get("namespace", "") if name != "namespaces" else about["name"],
                binding=decided["authorization.k8s.io/reason"].split('"')[1] if allowed else "",
            )
