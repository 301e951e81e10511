"""An authenticating proxy for a server on this machine, which adds a bearer token to requests of browsers."""

import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def token_proxy(port: int, token: str, before: Callable[[str], None] = lambda _: None) -> Iterator[str]:
    """Yields its URL. ``before`` is called with the path of each request, before that is forwarded to ``port``."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            before(self.path)
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}{self.path}", headers={"Authorization": f"Bearer {token}"}
            )
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    self._pass_on(answer.status, answer.headers, answer.read())
            except urllib.error.HTTPError as refused:
                self._pass_on(refused.code, refused.headers, refused.read())

        def _pass_on(self, status: int, headers: object, body: bytes) -> None:
            self.send_response(status)
            kept = {"content-type", "content-security-policy", "cache-control", "refresh", "x-content-type-options"}
            for name, value in headers.items():  # type: ignore[attr-defined]
                if name.lower() in kept:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - the name in the library
            """Keep requests out of the output of tests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, name="proxy", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
