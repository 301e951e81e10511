"""Requests to an API server over a persistent connection: ten times cheaper than kubectl."""

import base64
import http.client
import json
import ssl
import threading
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class KubectlError(RuntimeError):
    """The API server or kubectl refused the request; the text is kubectl's error message."""


class Connection:
    """Uses the credentials of a kubeconfig as printed by `kubectl config view --raw --minify --flatten -o json`.

    Supports a client certificate or a token. Each thread has its own connection.
    """

    def __init__(self, kubeconfig: Mapping[str, Any], directory: Path) -> None:
        cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
        self._server = urllib.parse.urlsplit(cluster["server"])
        self._headers = {"Content-Type": "application/json"}
        self._trust = ssl.create_default_context(cadata=_decoded(cluster["certificate-authority-data"]))
        if "client-certificate-data" in user:
            both = directory / "connection.pem"  # the ssl module reads certificates from files only
            both.touch(mode=0o600)
            both.write_text(_decoded(user["client-certificate-data"]) + _decoded(user["client-key-data"]))
            self._trust.load_cert_chain(both)
        else:
            self._headers["Authorization"] = f"Bearer {user['token']}"
        self._own = threading.local()

    def get(self, path: str, **query: str) -> Any:
        """GET a path; returns the parsed JSON. `KubectlError` if the API server refuses."""
        try:
            return self._ask(self._kept(), "GET", path, query)
        except (OSError, http.client.HTTPException):  # the server has closed the idle connection
            self._own.kept = None
            return self._ask(self._kept(), "GET", path, query)

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None, **query: str) -> Any:
        """Create, replace, merge or delete; returns the parsed response. `KubectlError` if the API server refuses."""
        connection = self._new()  # a kept connection may be closed by now, and writes are not retried
        try:
            return self._ask(connection, method, path, query, json.dumps(body) if body is not None else None)
        finally:
            connection.close()

    def _kept(self) -> http.client.HTTPSConnection:
        kept: http.client.HTTPSConnection | None = getattr(self._own, "kept", None)
        if kept is None:
            kept = self._own.kept = self._new()
        return kept

    def _new(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            self._server.hostname or "", self._server.port, context=self._trust, timeout=120
        )

    def _ask(
        self,
        connection: http.client.HTTPSConnection,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: str | None = None,
    ) -> Any:
        target = f"{path}?{urllib.parse.urlencode(query)}" if query else path
        patch = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
        connection.request(method, target, body, self._headers | patch)
        answer = connection.getresponse()
        text = answer.read().decode()
        # A kind that is not served is refused in plain text.
        said = json.loads(text) if text.startswith("{") else {"message": text.strip()}
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            reason = said.get("reason") or http.HTTPStatus(answer.status).phrase.replace(" ", "")
            raise KubectlError(f"Error from server ({reason}): {said['message']}")
        return said


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()
