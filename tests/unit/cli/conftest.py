"""Commands must not find the kubeconfig of the machine that runs the tests."""

import os

import pytest


@pytest.fixture(autouse=True)
def no_kubeconfig(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty one, in which no namespace is set."""
    monkeypatch.setenv("KUBECONFIG", os.devnull)
