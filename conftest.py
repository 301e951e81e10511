"""Which tests run side by side: those that share servers stay together, on one worker and in order."""

from pathlib import PurePosixPath

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

_TOGETHER = ("e2e", "tests/contract", "tests/kube", "tests/chart", "tests/pipeline")
"""Every directory here starts servers once for all its tests."""

_SECOND_HALF = {
    "e2e/test_sharing.py",
    "e2e/test_strategies.py",
    "e2e/test_teardown.py",
    "e2e/test_throttling.py",
    "e2e/test_two_operators.py",
}
"""As long as the rest of the end-to-end tests: worth servers of their own where another worker takes them."""

_ON_ITS_OWN = "e2e/test_pipeline.py"
"""Brokers of its own, and a minute of Spark: whoever is free takes it."""

_FIRST = ("e2e", "e2e, second half", *_TOGETHER[1:], _ON_ITS_OWN)
"""What takes the longest."""


def _group(file: str) -> str:
    if file in _SECOND_HALF:
        return "e2e, second half"
    directory = str(PurePosixPath(file).parent)
    return directory if directory in _TOGETHER and file != _ON_ITS_OWN else file


class Scheduling(LoadScopeScheduling):
    """Hands out whole groups."""

    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid.partition("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """In place of any of xdist's own."""
    return Scheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what takes long first."""
    order = {name: at for at, name in enumerate(_FIRST)}
    items.sort(key=lambda item: order.get(_group(item.nodeid.partition("::")[0]), len(order)))
