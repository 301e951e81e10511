"""A real Prometheus server process: Debian's package, unpacked into the cache, so that no service is installed."""

import subprocess
import sys
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.bench.cache import cached
from e2e.bench.ports import release_port, reserve_port
from e2e.bench.process import Child
from e2e.bench.waiting import wait_until

USER, PASSWORD = "bench", "bench-password"
_BCRYPT = "$2b$04$1OjiHyO6zImBEktyHSx.7ePW4mwlFY26WHj3perYNjq1VdNxOuQkm"
"""Of the password."""


def promtool(*arguments: str, at: Path, standard_input: str = "") -> str:
    """Run promtool in this directory; returns what it prints. AssertionError if it finds something wrong."""
    done = subprocess.run(
        [str(_programs() / "promtool"), *arguments],
        cwd=at,
        input=standard_input,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@contextmanager
def prometheus_server(
    place: Path, history: str = "", scraped: int | None = None, rules: Path | None = None
) -> Iterator[str]:
    """Runs the server, which asks for `USER` and `PASSWORD`; yields its URL.

    ``history``: samples with times, in the OpenMetrics format. ``scraped``: port of an exporter, scraped each second.
    ``rules``: a rule file, evaluated each second.
    """
    programs, data, port = _programs(), place / "data", reserve_port()
    if history:
        (place / "history.txt").write_text(history)
        promtool("tsdb", "create-blocks-from", "openmetrics", "history.txt", str(data), at=place)
    targets = f"[127.0.0.1:{scraped}]" if scraped else "[]"
    evaluated = f"global: {{evaluation_interval: 1s}}\nrule_files: ['{rules}']\n" if rules else ""
    (place / "prometheus.yml").write_text(
        f"{evaluated}scrape_configs:\n- job_name: kafka\n  scrape_interval: 1s\n  scrape_timeout: 1s\n"
        f"  static_configs: [{{targets: {targets}}}]\n"
    )
    (place / "web.yml").write_text(f"basic_auth_users: {{{USER}: {_BCRYPT}}}\n")
    command = [
        str(programs / "prometheus"),
        f"--config.file={place}/prometheus.yml",
        f"--web.config.file={place}/web.yml",
        f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=10y",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    server = Child(command, log=place / "prometheus.log")
    login = f"Basic {b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"
    ready = urllib.request.Request(f"http://127.0.0.1:{port}/-/ready", headers={"Authorization": login})

    def is_ready() -> bool:
        server.check_alive()
        try:
            urllib.request.urlopen(ready, timeout=5)
        except OSError:  # also a refusal: it answers 503 until it is ready
            return False
        return True

    try:
        wait_until("Prometheus is ready", is_ready)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop()
        release_port(port)


def _programs() -> Path:
    return cached("prometheus/debian", _install) / "usr/bin"


def _install(place: Path) -> None:
    print("Downloading Prometheus (20 MB, once)", file=sys.stderr, flush=True)
    _run("apt-get", "download", "prometheus", at=place)
    (package,) = place.glob("prometheus_*.deb")
    _run("dpkg-deb", "--extract", str(package), str(place), at=place)
    package.unlink()


def _run(*command: str, at: Path) -> None:
    subprocess.run(command, check=True, cwd=at, stdout=sys.stderr)
