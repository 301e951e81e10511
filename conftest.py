"""Which tests run side by side: those that share servers stay together, on one worker and in order."""

from pathlib import PurePosixPath

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

_TOGETHER = ("tests/contract", "tests/kube", "tests/chart", "tests/pipeline")
"""Every directory here starts servers once for all its tests."""

_HALF = ("e2e/test_[a-n]*", "e2e/test_[o-z]*")
"""The end-to-end tests take the longest by far: half of them get servers of their own."""


def _group(file: str) -> str:
    path = PurePosixPath(file)
    halves = [pattern for pattern in _HALF if path.match(pattern)]
    return halves[0] if halves else str(path.parent) if str(path.parent) in _TOGETHER else file


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
    order = {name: at for at, name in enumerate((*_HALF, *_TOGETHER))}
    items.sort(key=lambda item: order.get(_group(item.nodeid.partition("::")[0]), len(order)))
