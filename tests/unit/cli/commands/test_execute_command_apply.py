"""kafka-rebalance execute --apply: what is created, and what happens when the command is repeated."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pytest
from tests.unit.cli.commands.execute_runs import FROM_FILE, ROLLBACK, World

from kafka_rebalance.errors import RebalanceError, Refused, Transient
from kafka_rebalance.kube.api_errors import Conflict, Forbidden, from_response

ORDER = (*FROM_FILE, "--apply", "--name", "move")

NO_DRY_RUNS = from_response(
    "POST it",
    400,
    b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"admission webhook \\"old.example.org\\" does not support dry run","reason":"BadRequest","code":400}',
)
"""The answer of Kubernetes 1.36 for a webhook whose sideEffects are Some."""


@pytest.fixture
def world() -> World:
    return World()


class TestApply:
    def test_created(self, world: World) -> None:
        """The lists first; the rollback on stdout, where Kafka's tool prints it."""
        code, out, err = world.run(*FROM_FILE, "--apply", "-n", "kafka", "--name", "move")
        assert (code, err) == (0, "")
        assert out == ROLLBACK + (
            "KafkaRebalance kafka/move created; follow it with: kafka-rebalance watch move -n kafka\n"
        )
        lists, rebalance = world.kube.created
        assert lists.startswith("/api/v1/namespaces/kafka/configmaps/move-")
        assert rebalance == "/apis/kafkarebalance.dev/v1alpha1/namespaces/kafka/kafkarebalances/move"
        assert world.kube.closed

    def test_all_or_nothing(self, world: World) -> None:
        """A ConfigMap without its KafkaRebalance would stay for ever, so a dry run comes first."""
        world.kube.failing["KafkaRebalance"] = Refused("ApiServerRefused", "invalid")
        assert world.run(*ORDER)[0] == 3
        assert world.kube.created == {}

    def test_the_message_of_the_api_server_is_printed_unchanged(self, world: World) -> None:
        """It validates what the command does not, for example labels."""
        said = 'KafkaRebalance.kafkarebalance.dev "move" is invalid: metadata.labels: Invalid value: "b c": a valid …'
        status = json.dumps({"kind": "Status", "status": "Failure", "message": said, "code": 422})
        world.kube.failing["KafkaRebalance"] = from_response("POST it", 422, status.encode())
        code, _, err = world.run(*ORDER)
        assert (code, err) == (3, f"refused (ApiServerRefused): POST it: {said}\n")

    def test_without_lists_there_is_nothing_to_ask_before(self, world: World) -> None:
        """A single object is created or refused as a whole."""
        world.kube.no_dry_runs = NO_DRY_RUNS
        code, _, err = world.run("--decommission-broker", "4", "--apply")
        assert (code, err) == (0, "")
        assert len(world.kube.created) == 1

    @pytest.mark.parametrize("kind", ["ConfigMap", "KafkaRebalance"])
    def test_the_answer_is_lost(self, world: World, kind: str) -> None:
        """The same command again finds the existing objects and completes as the first would have."""
        world.kube.after[kind] = Transient("ApiServerUnreachable", "no answer")
        assert world.run(*ORDER)[0] == 1
        world.kube.after.clear()
        code, out, err = world.run(*ORDER)
        assert (code, err) == (0, "")
        assert ("already exists" in out) == (kind == "KafkaRebalance")
        assert len(world.kube.created) == 2

    @pytest.mark.parametrize("order", [ORDER, ("--decommission-broker", "4", "--apply")])
    def test_the_same_order_twice_is_one(self, world: World, order: tuple[str, ...]) -> None:
        """Fields that the API server has defaulted are not a difference."""
        world.run(*order)
        before = dict(world.kube.created)
        *_, body = before.values()
        body["spec"] = {**body["spec"], "priority": 0, "goals": {"leaders": True}}
        code, out, _ = world.run(*order)
        assert code == 0
        assert "already exists with the same spec; follow it with" in out
        assert world.kube.created == before

    def test_lists_that_were_deleted_come_back(self, world: World) -> None:
        """The KafkaRebalance may be waiting for them."""
        world.run(*ORDER)
        before = list(world.kube.created)
        del world.kube.created[before[0]]
        assert world.run(*ORDER)[0] == 0
        assert set(world.kube.created) == set(before)

    def test_lists_of_a_deleted_one_are_taken(self, world: World) -> None:
        """They have the requested content and are not changed."""
        world.run(*ORDER)
        lists, rebalance = world.kube.created
        del world.kube.created[rebalance]
        found = world.kube.created[lists]
        assert world.run(*ORDER)[0] == 0
        assert world.kube.created[lists] is found
        assert rebalance in world.kube.created

    @pytest.mark.parametrize(
        ("there", "says"),
        [
            ({"data": {"assignment.json": "{}"}}, "exists with other content"),
            ({"binaryData": {"more": "AA=="}}, "exists with other content"),
            ({"metadata": {"deletionTimestamp": "2026-11-22T00:00:00Z"}}, "is being deleted"),
        ],
    )
    def test_a_foreign_config_map(self, world: World, there: dict[str, Any], says: str) -> None:
        """It is named, and neither used nor changed; nothing else is created."""
        world.run(*ORDER)
        lists, rebalance = world.kube.created
        del world.kube.created[rebalance]
        world.kube.created[lists] |= there
        code, out, err = world.run(*ORDER)
        assert (code, out) == (3, ROLLBACK)
        assert err.startswith(f"refused (ConfigMapTaken): ConfigMap default/{lists.rpartition('/')[2]} {says}")
        assert list(world.kube.created) == [lists]

    @pytest.mark.parametrize(
        ("there", "says"),
        [
            ({"spec": {"kafka": {"bootstrapServers": "kafka:9092"}}}, "exists with another spec"),
            ({"spec": {"misread": 1}}, "exists and cannot be read: spec."),
            ({"metadata": {"deletionTimestamp": "2026-11-22T00:00:00Z"}}, "is being deleted"),
            (
                {
                    "status": {
                        "conditions": [
                            {
                                "type": "Ready",
                                "status": "True",
                                "reason": "Succeeded",
                                "message": "",
                                "observedGeneration": 1,
                                "lastTransitionTime": "2026-11-22T00:00:00Z",
                            }
                        ]
                    }
                },
                "exists with the same spec and has ended (Succeeded)",
            ),
        ],
    )
    def test_another_of_that_name(self, world: World, there: dict[str, Any], says: str) -> None:
        """It is named, and nothing else is created."""
        world.run(*ORDER)
        lists, rebalance = world.kube.created
        del world.kube.created[lists]
        body = world.kube.created[rebalance]
        body |= {**there, "metadata": {**body["metadata"], **there.get("metadata", {})}}
        code, _, err = world.run(*ORDER)
        assert code == 3
        assert err.startswith(f"refused (AlreadyThere): KafkaRebalance default/move {says}")
        assert list(world.kube.created) == [rebalance]

    def test_one_that_comes_and_goes(self, world: World) -> None:
        """The command never reports an object as created that does not exist."""
        world.kube.failing["KafkaRebalance"] = Conflict("exists")
        code, out, err = world.run(*ORDER)
        assert (code, out) == (1, ROLLBACK)
        assert err.startswith("failed (Conflict): ")

    def test_somebody_was_faster(self, world: World) -> None:
        """Another client creates it between the dry run and the request."""
        world.run(*ORDER)
        (_, rebalance), found = world.kube.created, dict(world.kube.created)
        world.kube.created.clear()
        put = world.kube.request

        async def rival(method: str, path: str, body: Any = None, **options: Any) -> Any:
            answer = await put(method, path, body, **options)
            world.kube.created.update(found if "dryRun" in path else {})
            return answer

        with patch.object(world.kube, "request", rival):
            code, out, _ = world.run(*ORDER)
        assert code == 0
        assert "move already exists" in out
        assert rebalance in world.kube.created


class TestWebhookWithoutDryRuns:
    """A dry run is not possible: the command continues without it, and says so."""

    @pytest.fixture(autouse=True)
    def no_dry_runs(self, world: World) -> None:
        world.kube.no_dry_runs = NO_DRY_RUNS

    def test_created(self, world: World) -> None:
        code, out, err = world.run(*ORDER)
        assert code == 0
        assert "KafkaRebalance default/move created" in out
        assert err == (
            'no dry run was possible before: POST it: admission webhook "old.example.org" does not support dry run\n'
        )
        assert len(world.kube.created) == 2

    @pytest.mark.parametrize(
        "error", [Refused("ApiServerRefused", "POST it: denied"), Forbidden("POST it: denied")], ids=["400", "403"]
    )
    def test_refused(self, world: World, error: RebalanceError) -> None:
        """The message names the ConfigMap that stays; the same command uses it again."""
        world.kube.failing["KafkaRebalance"] = error
        code, _, err = world.run(*ORDER)
        (lists,) = world.kube.created
        assert code == 3
        assert err.startswith(f"refused ({error.reason}): POST it: denied; ConfigMap ")
        assert f"ConfigMap default/{lists.rpartition('/')[2]} was created before, since no dry run was possible" in err
        world.kube.failing.clear()
        assert world.run(*ORDER)[0] == 0
        assert len(world.kube.created) == 2

    def test_the_answer_is_lost(self, world: World) -> None:
        """Not a refusal: it is unknown whether the object exists, and nothing else is reported."""
        world.kube.after["KafkaRebalance"] = Transient("ApiServerUnreachable", "no answer")
        code, _, err = world.run(*ORDER)
        assert code == 1
        assert "dry run" not in err

    def test_the_same_order_twice_is_one(self, world: World) -> None:
        world.run(*ORDER)
        before = dict(world.kube.created)
        code, out, _ = world.run(*ORDER)
        assert (code, world.kube.created) == (0, before)
        assert "already exists with the same spec" in out

    def test_another_one_of_that_name(self, world: World) -> None:
        """Detected before any list is created."""
        world.run("--decommission-broker", "4", "--apply", "--name", "move")
        code, _, err = world.run(*ORDER)
        assert (code, len(world.kube.created)) == (3, 1)
        assert err.startswith("refused (AlreadyThere): KafkaRebalance default/move exists with another spec")
