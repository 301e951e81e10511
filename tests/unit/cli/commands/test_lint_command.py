"""kafka-rebalance lint: what is refused, what is warned of, and the exit codes."""

import json
from pathlib import Path

import pytest
import yaml
from tests.fakes.whole_program import run_program
from tests.kube.bad_rebalances import BAD_REBALANCES
from tests.kube.spec_parts import BadInput

KAFKA = {"bootstrapServers": "kafka:9092"}
EXAMPLES = sorted(
    path
    for path in (Path(__file__).parents[4] / "examples").rglob("*.yaml")
    if "kafkarebalance.dev" in path.read_text()
)


def resource(spec=None, kind="KafkaRebalance", **more):
    head = {"apiVersion": "kafkarebalance.dev/v1alpha1", "kind": kind, "metadata": {"name": "a"}}
    kafka = {} if kind == "KafkaConnection" else {"kafka": KAFKA}
    return {**head, "spec": {**kafka, **(spec or {})}, **more}


def lint(*documents, options=()):
    return run_program("lint", "-", *options, stdin=yaml.safe_dump_all(documents))


class TestErrors:
    @pytest.mark.parametrize("bad", BAD_REBALANCES)
    def test_what_the_model_refuses(self, bad: BadInput):
        """In the same words as everywhere."""
        done = lint(resource(bad.spec))
        assert done.code == 4
        assert f"<stdin>: KafkaRebalance a: error: {bad.model.partition('; ')[0]}" in done.out

    @pytest.mark.parametrize(
        ("document", "says"),
        [
            (resource({"leaderRate": 0}, "KafkaReassignmentThrottle"), "error: spec.leaderRate: must be a quantity"),
            (resource({"tls": {}}, "KafkaConnection"), "KafkaConnection a: error: spec.bootstrapServers: is required"),
            (resource(speck={}), "error: speck: unknown field; did you mean spec?"),
            (resource(kind="KafkaRebalanc"), "KafkaRebalanc a: error: kind: must be 'KafkaRebalance', "),
            (resource(apiVersion="kafkarebalance.dev/v1"), "error: apiVersion: must be 'kafkarebalance.dev/v1alpha1'"),
            (resource(metadata={}), "KafkaRebalance: error: metadata.name: is required"),
            (resource(metadata={"name": "A_b"}), "error: metadata.name: must be the name of an object"),
            (
                resource({"execution": {"windows": [{"cron": "0 0 30 2 *", "duration": "1h"}]}}),
                "error: spec.execution.windows[0]: ",
            ),
        ],
    )
    def test_of_each_kind(self, document, says):
        done = lint(document)
        assert done.code == 4
        assert says in done.out

    def test_a_wrong_entry_is_one_error(self):
        """The list is not too short because of it."""
        out = lint(resource({"goals": {"load": {"resources": [{"name": "Disks"}]}}})).out
        assert "spec.goals.load.resources[0].name: must be 'Disk', " in out
        assert "must not be empty" not in out
        out = lint(resource({"goals": {"load": {"resources": []}}})).out
        assert "spec.goals.load.resources: must not be empty" in out

    def test_one_line_has_all_errors_of_a_resource(self):
        lines = lint(resource({"priority": "high", "strateg": "x"}), resource({"priority": 1.5})).out.splitlines()
        assert "spec.priority: must be an integer, found 'high'; spec.strateg: unknown field; did you" in lines[0]
        assert lines[1:] == [
            "<stdin>: KafkaRebalance a: error: spec.priority: must be an integer",
            "2 resources, 2 errors, 0 warnings",
        ]

    def test_what_is_not_yaml(self):
        done = run_program("lint", "-", stdin="a: [")
        assert done.code == 4
        assert done.out.startswith("<stdin>: the file: error: not YAML: line 1")

    def test_in_a_list_too(self):
        done = lint({"apiVersion": "v1", "kind": "List", "items": [resource(), resource({"priority": 1.5})]})
        assert done.code == 4
        assert done.out.endswith("2 resources, 1 error, 0 warnings\n")


class TestWarnings:
    LOW = resource({"throttle": {"leaderRate": 50}})

    def test_they_do_not_fail(self):
        done = lint(self.LOW, resource({"followerRate": 50}, "KafkaReassignmentThrottle"))
        assert done.code == 0
        assert "<stdin>: KafkaRebalance a: warning: spec.throttle.leaderRate: 50 B/s is very low" in done.out
        assert "<stdin>: KafkaReassignmentThrottle a: warning: spec.followerRate: 50 B/s is very low" in done.out
        assert done.out.endswith("2 resources, 0 errors, 2 warnings\n")

    def test_a_risk_that_is_meant(self):
        """A reviewer sees it; the operator does not repeat it in the status."""
        done = lint(resource({"throttle": {"unlimited": True}}))
        assert done.code == 0
        assert "KafkaRebalance a: warning: spec.throttle.unlimited: copies may take all the bandwidth" in done.out

    def test_unless_asked_to(self):
        assert lint(self.LOW, options=("--strict",)).code == 4
        assert lint(resource(), options=("--strict",)).code == 0

    def test_json(self):
        (row,) = json.loads(lint(self.LOW, options=("-o", "json")).out)["resources"]
        assert (row["file"], row["resource"], row["errors"]) == ("<stdin>", "KafkaRebalance a", [])
        assert row["warnings"][0].startswith("spec.throttle.leaderRate: 50 B/s")


class TestOthers:
    def test_other_kinds_are_left_out(self):
        """Strimzi has a KafkaRebalance too."""
        strimzi = {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaRebalance", "spec": {"mode": "full"}}
        done = lint(strimzi, {"kind": "ConfigMap"}, "text", None)
        assert (done.code, done.out) == (0, "0 resources, 0 errors, 0 warnings\n")

    @pytest.mark.parametrize(("options", "code"), [((), 0), (("--strict",), 4)])
    def test_nothing_to_check(self, options, code):
        """A pattern that matches the wrong files must not look like a success."""
        done = lint({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}, options=options)
        assert done.code == code
        assert done.err == "warning: the files contain no resource of kafkarebalance.dev, so nothing was checked\n"

    def test_a_file_that_does_not_exist(self):
        assert run_program("lint", "/nowhere.yaml").code == 2

    def test_the_examples(self):
        done = run_program("lint", *map(str, EXAMPLES))
        assert EXAMPLES
        assert done.code == 0, done.out
