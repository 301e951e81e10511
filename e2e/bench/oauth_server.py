"""An OAuth server on this machine that issues signed tokens for client credentials, over https.

Authlib implements RFC 6749, joserfc the JSON Web Tokens. Brokers verify the tokens with the file of public keys.
"""

import json
import ssl
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl

from authlib.oauth2.rfc6749 import AuthorizationServer, ClientCredentialsGrant, ClientMixin, OAuth2Request
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from e2e.bench.pki import Authority

AUDIENCE = "kafka"


class OAuthServer:
    """A token endpoint for `clients` (id -> secret, which may be changed); `with` serves it.

    `directory` receives the CA of its certificate and the public keys. `lifetime` is that of the next tokens.
    """

    def __init__(self, directory: Path, clients: dict[str, str]) -> None:
        self.clients = clients
        self.lifetime = 3600
        self.issued: list[dict[str, Any]] = []
        """The claims of all issued tokens."""
        self._pki = Authority(directory / "oauth")
        self._pki.issue("server", "/CN=oauth", "IP:127.0.0.1")
        self._key = RSAKey.generate_key(2048, {"kid": "bench", "use": "sig", "alg": "RS256"})
        self.public_keys = directory / "jwks.json"
        self.public_keys.write_text(json.dumps(KeySet([self._key]).as_dict(private=False)))
        rules = _Rules(self)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = dict(parse_qsl(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()))
                request = OAuth2Request("POST", f"https://oauth{self.path}", headers=self.headers)
                request.payload = BasicOAuth2Payload(form)
                status, body, headers = rules.create_token_response(request)
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *_: Any) -> None:
                """Write nothing to stderr."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._pki.crt("server"), self._pki.key("server"))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    @property
    def endpoint(self) -> str:
        """The address that issues tokens."""
        return f"https://127.0.0.1:{self._server.server_address[1]}/token"

    @property
    def ca(self) -> str:
        """The CA of the server's certificate, in PEM."""
        return Path(self._pki.crt("ca")).read_text()

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def token(self, client_id: str, scope: str | None) -> dict[str, Any]:
        """A new token, as the token endpoint answers with it."""
        now = int(time.time())
        claims = {
            "iss": "https://oauth",
            "sub": client_id,
            "aud": AUDIENCE,
            "scope": scope or "",
            "iat": now,
            "exp": now + self.lifetime,
            "jti": uuid.uuid4().hex,
        }
        self.issued.append(claims)
        token = jwt.encode({"alg": "RS256", "kid": "bench"}, claims, self._key)
        return {"token_type": "Bearer", "access_token": token, "expires_in": self.lifetime}


class _Client(ClientMixin):  # type: ignore[misc]
    """A client that authenticates with HTTP Basic."""

    def __init__(self, client_id: str, secret: str) -> None:
        self.client_id, self.secret = client_id, secret

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == self.secret

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return (method, endpoint) == ("client_secret_basic", "token")

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "client_credentials"

    def get_allowed_scope(self, scope: str) -> str:
        return scope


class _Grant(ClientCredentialsGrant):  # type: ignore[misc]
    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic",)


class _Rules(AuthorizationServer):  # type: ignore[misc]
    """RFC 6749 for the clients of one server."""

    def __init__(self, server: OAuthServer) -> None:
        super().__init__(scopes_supported=["kafka"])
        self._of = server
        self.register_grant(_Grant)
        self.register_token_generator("default", lambda client, scope, **_: server.token(client.client_id, scope))

    def query_client(self, client_id: str) -> _Client | None:
        secret = self._of.clients.get(client_id)
        return _Client(client_id, secret) if secret is not None else None

    def save_token(self, token: dict[str, Any], request: OAuth2Request) -> None:
        """Tokens are not stored: brokers verify their signature."""

    def create_oauth2_request(self, request: OAuth2Request) -> OAuth2Request:
        return request

    def handle_response(self, status: int, body: Any, headers: Any) -> tuple[int, Any, Any]:
        return status, body, headers

    def send_signal(self, *_arguments: Any, **_options: Any) -> None:
        """No subscribers."""
