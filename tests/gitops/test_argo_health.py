"""The health check for Argo CD, executed by a Lua interpreter of the version that Argo CD has."""

from typing import Any

import pytest
import yaml
from lupa.lua51 import LuaRuntime
from tests.gitops.reported_states import GITOPS, WAITING, fresh, rebalance, states

from kafka_rebalance.api.conditions import ReadySummary
from kafka_rebalance.reasons import Reason

CUSTOMIZATION = GITOPS / "argocd" / "resource_customizations" / "kafkarebalance.dev" / "_"
SCRIPT = (CUSTOMIZATION / "health.lua").read_text(encoding="utf-8")
TESTS = yaml.safe_load((CUSTOMIZATION / "health_test.yaml").read_text(encoding="utf-8"))["tests"]


def health(resource: dict[str, Any], script: str = SCRIPT) -> dict[str, str]:
    """What Argo CD makes of the resource: the script sees it as ``obj``, and no libraries but those of Argo CD."""
    lua = LuaRuntime(unpack_returned_tuples=True)
    for name in ("os", "io", "require", "package", "debug"):
        lua.globals()[name] = None
    lua.globals()["obj"] = lua.table_from(resource, recursive=True)
    return dict(lua.execute(script))


class TestArgosLayout:
    """health_test.yaml and testdata/, as Argo CD has them for the checks that it comes with."""

    @pytest.mark.parametrize("test", TESTS, ids=lambda test: str(test["inputPath"]))
    def test_health(self, test: dict[str, Any]) -> None:
        resource = yaml.safe_load((CUSTOMIZATION / test["inputPath"]).read_text(encoding="utf-8"))
        assert health(resource) == test["healthStatus"]

    def test_each_file_is_named(self) -> None:
        files = {f"testdata/{path.name}" for path in (CUSTOMIZATION / "testdata").iterdir()}
        assert {test["inputPath"] for test in TESTS} == files

    def test_the_config_map_has_the_same_script(self) -> None:
        config = yaml.safe_load((GITOPS / "argocd" / "argocd-cm.yaml").read_text(encoding="utf-8"))
        customizations = yaml.safe_load(config["data"]["resource.customizations"])
        assert customizations == {"kafkarebalance.dev/*": {"health.lua": SCRIPT}}


class TestStates:
    @pytest.mark.parametrize(("reason", "summary"), [*states()], ids=str)
    def test_each_state(self, reason: Reason, summary: ReadySummary) -> None:
        """Waiting for a person or for a time is Suspended, which is neither broken nor progressing for ever."""
        expected = {ReadySummary.DONE: "Healthy", ReadySummary.STUCK: "Degraded"}.get(summary, "Progressing")
        found = health(rebalance(summary, reason))
        assert found["status"] == ("Suspended" if reason in WAITING else expected)
        assert found["message"] == f"{reason}: as told"

    def test_a_new_resource_is_not_healthy(self) -> None:
        assert health(fresh())["status"] == "Progressing"
        assert health({**fresh(), "status": None})["status"] == "Progressing"

    def test_an_edit_counts_at_once(self) -> None:
        """The status is still that of the spec before."""
        edited = rebalance(ReadySummary.DONE, "Succeeded", generation=2)
        assert health(edited)["status"] == "Progressing"
