"""Shared by all tests: the Hypothesis profiles, the workers, the log, and the report of durations."""

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from e2e.bench.child_settings import set_defaults
from e2e.bench.sharing import DIRECTORY
from tests.examples import register_profiles
from tests.timing import Timing
from tests.workers import Kind, Scheduling, is_lane, position, unit
from xdist.remote import Producer

register_profiles()
_WORKER = os.environ.get("PYTEST_XDIST_WORKER")
_NICENESS = 10
set_defaults()


def pytest_configure(config: pytest.Config) -> None:
    """Before workers start: create a shared directory."""
    if _WORKER is None:
        os.environ[DIRECTORY] = tempfile.mkdtemp(prefix="kafka-rebalance-tests-")
        config.pluginmanager.register(Timing())


def pytest_runtest_setup(item: pytest.Item) -> None:
    """The worker that is no lane waits for servers first; when it only computes, it lets servers go first."""
    if _WORKER is None or is_lane(_WORKER) or unit(item.nodeid)[0] is not Kind.NOTHING:
        return
    os.setpriority(os.PRIO_PROCESS, 0, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected lives to the end of the run, so the garbage collector never looks at it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Without the garbage of earlier tests, which asyncio would log when it is collected."""
    gc.collect()
    return caplog


def pytest_unconfigure() -> None:
    """Delete the shared directory at the end of the run."""
    if _WORKER is None:
        shutil.rmtree(os.environ.pop(DIRECTORY), ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """Replaces the schedulers of xdist."""
    return Scheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run long tests first."""
    items.sort(key=lambda item: position(item.nodeid))
