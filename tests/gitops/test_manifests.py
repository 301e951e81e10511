"""The examples for Git: valid, and nobody rolls terabytes back by removing a file."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fakes.whole_program import run_program
from tests.gitops.reported_states import GITOPS

EXAMPLES = sorted(GITOPS.parent.rglob("*.yaml"))


def rebalances() -> list[tuple[str, dict[str, Any]]]:
    """Those that a user applies, not the data of tests."""
    return [
        (str(path.relative_to(GITOPS.parent)), document)
        for path in EXAMPLES
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
        if document.get("kind") == "KafkaRebalance" and path.parent.name != "testdata"
    ]


@pytest.fixture(params=rebalances(), ids=lambda found: found[0])
def rebalance(request: pytest.FixtureRequest) -> dict[str, Any]:
    document: dict[str, Any] = request.param[1]
    return document


def test_the_examples_are_found() -> None:
    """An empty list would make the other tests pass."""
    names = [name for name, _ in rebalances()]
    assert {"add-brokers.yaml", "nightly.yaml", "gitops/rebalance.yaml"} <= set(names)


def test_a_prune_asks_first(rebalance: dict[str, Any]) -> None:
    assert rebalance["metadata"]["annotations"]["argocd.argoproj.io/sync-options"] == "Prune=confirm,Delete=confirm"


def test_what_is_for_git_is_not_pruned_by_flux() -> None:
    (found,) = (document for name, document in rebalances() if name == "gitops/rebalance.yaml")
    assert found["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/prune"] == "disabled"


@pytest.mark.parametrize("path", [GITOPS / "rebalance.yaml"], ids=lambda path: str(path.name))
def test_it_is_valid(path: Path) -> None:
    done = run_program("lint", str(path))
    assert (done.code, done.err) == (0, "")


def test_argo_ignores_what_git_does_not_name() -> None:
    """Fields that people change while a rebalance runs are neither in the example nor reverted."""
    application = yaml.safe_load((GITOPS / "argocd" / "application.yaml").read_text(encoding="utf-8"))
    ignored = {row["kind"]: row["jsonPointers"] for row in application["spec"]["ignoreDifferences"]}
    assert "RespectIgnoreDifferences=true" in application["spec"]["syncPolicy"]["syncOptions"]
    named = yaml.safe_load((GITOPS / "rebalance.yaml").read_text(encoding="utf-8"))
    for pointer in ignored["KafkaRebalance"]:
        at = named
        for key in pointer.split("/")[1:]:
            at = at.get(key, {})
        assert at == {}
