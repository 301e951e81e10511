"""One line per event on stderr, for people and log collectors. Secrets never get here: see `kafka.settings`."""

import logging
import sys
import time


def configure_logging(level: str) -> None:
    """Set up the root logger; libraries that log every request are limited to warnings."""
    formatter = logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for noisy in ("kafka", "kopf", "urllib3", "kubernetes", "asyncio", "aiohttp"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # It warns that signals are ignored outside the main thread, which is intended.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
