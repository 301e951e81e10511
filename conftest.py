"""Which tests run side by side: those that share servers stay together, on one worker and in order."""

from pathlib import PurePosixPath

import pytest
from tests.examples import register_profiles
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

register_profiles()

_TOGETHER = ("e2e", "tests/contract", "tests/kube", "tests/chart", "tests/pipeline")
"""Every directory here starts servers once for all its tests; what takes the longest is first."""

_ON_ITS_OWN = "e2e/test_pipeline.py"
"""Brokers of its own, and a minute of Spark: whoever is free takes it."""


def _group(file: str) -> str:
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
    order = {name: at for at, name in enumerate((*_TOGETHER, _ON_ITS_OWN))}
    items.sort(key=lambda item: order.get(_group(item.nodeid.partition("::")[0]), len(order)))
