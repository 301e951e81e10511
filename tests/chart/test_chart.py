"""The chart without a cluster: what it renders, what it refuses, and that it agrees with its sources."""

import json
import tomllib
from collections.abc import Iterator
from typing import Any

import click
import pytest
import yaml
from tests.chart.rendering import (
    CASES,
    CHART,
    NAME,
    NAMESPACE,
    ROOT,
    Manifest,
    helm,
    of_kind,
    parsed,
    pod_templates,
    rendered,
    snapshot,
    snapshot_of,
    values_of,
)
from tests.chart.rule_triples import triples
from tests.chart.values_table import undescribed, with_table

from kafka_rebalance.app.metrics_port import PATH
from kafka_rebalance.app.probes import PROBES
from kafka_rebalance.cli.main import cli
from kafka_rebalance.pipeline.size_history import HORIZONS, LONGEST, days_needed
from kafka_rebalance.units import parse_duration

VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))

SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))


class TestFollowsFromItsSources:
    """Duplicated content is identical; `make chart` updates it."""

    @pytest.mark.parametrize("case", CASES)
    def test_snapshots(self, case: str) -> None:
        assert snapshot(case) == snapshot_of(case).read_text(encoding="utf-8"), "look at the change, then `make chart`"

    def test_crds(self) -> None:
        originals = {path.name: path.read_bytes() for path in (ROOT / "crds").iterdir()}
        copies = {path.name: path.read_bytes() for path in (CHART / "files" / "crds").iterdir()}
        assert copies == originals, "run `make chart`"

    def test_readme(self) -> None:
        readme = (CHART / "README.md").read_text(encoding="utf-8")
        assert with_table(readme, CHART / "values.yaml") == readme, "run `make chart`"

    def test_every_value_is_described(self) -> None:
        assert undescribed(CHART / "values.yaml") == []

    def test_versions(self) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
        assert (chart["version"], chart["appVersion"]) == (project, project)


class TestLint:
    @pytest.mark.parametrize("case", CASES)
    def test_strict(self, case: str) -> None:
        helm("lint", "--strict", "--quiet", str(CHART), "--namespace", NAMESPACE, "--values", str(values_of(case)))


class TestCrds:
    """Identical to `crds/`: YAML that passes through helm's functions would turn integers into floats."""

    @pytest.mark.parametrize(("case", "kept"), [("default", True), ("production", False)])
    def test_rendered(self, case: str, kept: bool) -> None:
        found = {m["metadata"]["name"]: m for m in rendered(case) if m["kind"] == "CustomResourceDefinition"}
        originals = [crd for path in (ROOT / "crds").iterdir() for crd in parsed(path.read_text(encoding="utf-8"))]
        assert len(found) == len(originals) == 3
        for original in originals:
            crd = found[original["metadata"]["name"]]
            assert json.dumps(crd["spec"]) == json.dumps(original["spec"])
            annotations = {"helm.sh/resource-policy": "keep"} if kept else None
            assert crd["metadata"].get("annotations") == annotations
            assert crd["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"

    def test_left_out(self) -> None:
        assert not [m for m in rendered("namespaced") if m["kind"] == "CustomResourceDefinition"]


class TestPods:
    """Rules for every Pod of every case."""

    def all_pods(self) -> Iterator[tuple[str, Manifest]]:
        for case in CASES:
            for where, template in pod_templates(rendered(case)).items():
                yield f"{case}: {where}", template

    def test_commands_are_understood(self) -> None:
        """Every argument is an option of that command, with a valid value."""
        seen = set()
        for where, template in self.all_pods():
            (container,) = template["spec"]["containers"]
            program, *words = container["command"]
            assert program == "kafka-rebalance", where
            command: click.Command | None = cli
            for word in words:
                assert isinstance(command, click.Group)
                command = command.get_command(click.Context(command), word)
            assert command is not None, where
            # Secrets are mounted only in a Pod.
            arguments = [argument for argument in container["args"] if "-client/" not in argument]
            command.make_context(" ".join(words), arguments)
            seen.add(" ".join(words))
        assert seen == {
            "operator",
            "retire",
            "check-install",
            "pipeline sample",
            "pipeline metrics",
            "pipeline windows",
            "pipeline load-model",
            "pipeline history",
            "pipeline compact",
        }

    def test_pod_security_restricted(self) -> None:
        for where, template in self.all_pods():
            pod = template["spec"]
            assert pod["securityContext"]["runAsNonRoot"] is True, where
            assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, where
            for container in pod["containers"]:
                context = container["securityContext"]
                assert context["capabilities"] == {"drop": ["ALL"]}, where
                assert (context["allowPrivilegeEscalation"], context["readOnlyRootFilesystem"]) == (False, True), where
                assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"], where
                assert container["resources"]["requests"], where
                assert container["resources"]["limits"], where

    def test_a_token_only_for_those_who_use_it(self) -> None:
        for where, template in self.all_pods():
            (container,) = template["spec"]["containers"]
            uses = container["command"][1] != "pipeline" or "--master=k8s" in container["args"]
            assert template["spec"]["automountServiceAccountToken"] is uses, where
            assert ("serviceAccountName" in template["spec"]) is uses, where

    def test_the_operators_selector_finds_only_the_operators(self) -> None:
        """The selector never changes, because a Deployment's selector is immutable: it contains no version."""
        for case in CASES:
            manifests = rendered(case)
            selector = of_kind(manifests, "Deployment")["spec"]["selector"]["matchLabels"]
            assert "app.kubernetes.io/version" not in selector
            selected = [
                where
                for where, template in pod_templates(manifests).items()
                if selector.items() <= template["metadata"]["labels"].items()
            ]
            assert [where.partition("/")[0] for where in selected] == ["Deployment"]

    def test_secrets_come_as_files(self) -> None:
        (sampler,) = (t["spec"] for w, t in pod_templates(rendered("pipeline")).items() if w.endswith("-sample-prod"))
        assert "--command-config=/etc/kafka-client/client.properties" in sampler["containers"][0]["args"]
        assert [v["secret"]["secretName"] for v in sampler["volumes"] if "secret" in v] == ["sampler"]

    def test_those_for_prometheus_too(self) -> None:
        """Beside those for Kafka: the Job asks it for the brokers."""
        (reader,) = (t["spec"] for w, t in pod_templates(rendered("pipeline")).items() if w.endswith("-metrics-prod"))
        assert {
            "--command-config=/etc/kafka-client/client.properties",
            "--token-file=/etc/prometheus-client/token",
            "--ca-file=/etc/prometheus-client/ca.crt",
            "--broker-label=pod",
        } < set(reader["containers"][0]["args"])
        assert [v["secret"]["secretName"] for v in reader["volumes"] if "secret" in v] == ["sampler", "scraped"]

    def test_queries_keep_their_quotes(self) -> None:
        """PromQL has braces and quotes, which YAML has too."""
        query = 'sum by (topic, instance) (rate(x{cluster="a: b",topic!=""}[5m]))'
        prometheus = {"url": "http://p:9090", "bytesOutQuery": query}
        clusters = [{"name": "a", "bootstrapServers": "k:1", "prometheus": prometheus}]
        manifests = rendered("pipeline", "--set-json", f"pipeline.clusters={json.dumps(clusters)}")
        (reader,) = (t["spec"] for w, t in pod_templates(manifests).items() if w.endswith("-metrics-a"))
        assert f"--bytes-out-query={query}" in reader["containers"][0]["args"]

    def test_consumer_groups_may_be_left_out(self) -> None:
        """If the Kafka user may not describe groups."""
        for wanted in ("true", "false"):
            manifests = rendered("pipeline", "--set", f"pipeline.sampler.consumerGroups={wanted}")
            (sampler,) = (t["spec"] for w, t in pod_templates(manifests).items() if w.endswith("-sample-prod"))
            assert ("--no-consumer-groups" in sampler["containers"][0]["args"]) == (wanted == "false")

    def test_forecasts_have_the_days_that_they_need(self) -> None:
        """Stored windows outlive the samples: long enough for 30 days ahead, and looked for while samples are there."""
        pods = pod_templates(rendered("pipeline"))
        (compact,), (windows,) = (
            [t["spec"]["containers"][0]["args"] for w, t in pods.items() if w.endswith(name)]
            for name in ("-compact", "-windows")
        )
        found = dict(argument.removeprefix("--").split("=", 1) for argument in (*compact, *windows))
        samples, stored, looked_at = (
            parse_duration(found[name]) / 86_400 for name in ("retention", "windows-retention", "window")
        )
        assert looked_at <= samples < days_needed(max(HORIZONS)) <= stored <= LONGEST.days

    def test_the_operator_writes_the_history_that_a_job_learns_from(self) -> None:
        """Into the lake, from where it reads the durations."""
        for wanted in ("true", "false"):
            manifests = rendered("pipeline", "--set", f"pipeline.history.enabled={wanted}")
            (container,) = of_kind(manifests, "Deployment")["spec"]["template"]["spec"]["containers"]
            assert ("--history=/lake" in container["args"]) == (wanted == "true")
            jobs = [where for where in pod_templates(manifests) if where.endswith("-history")]
            assert bool(jobs) == (wanted == "true")

    @pytest.mark.parametrize("history", [True, False])
    @pytest.mark.parametrize("samples", [True, False])
    def test_the_operator_may_write_to_the_lake_only_if_it_has_to(self, *, history: bool, samples: bool) -> None:
        """The history of runs, and samples of KafkaConnections; it always reads load models there."""
        wanted = f"pipeline.history.enabled={history},pipeline.sampler.connections={samples}".lower()
        manifests = rendered("pipeline", "--set", wanted)
        (container,) = of_kind(manifests, "Deployment")["spec"]["template"]["spec"]["containers"]
        (lake,) = [mount for mount in container["volumeMounts"] if mount["name"] == "lake"]
        assert ("--samples=/lake" in container["args"]) == samples
        assert lake["readOnly"] == (not history and not samples)

    def test_a_history_without_the_pipeline(self) -> None:
        """In a store of the user's, as the load models and the samples."""
        lake = "s3://bucket/lake"
        manifests = rendered("default", "--set", f"history={lake},samples={lake},loadModels={lake}/models")
        (container,) = of_kind(manifests, "Deployment")["spec"]["template"]["spec"]["containers"]
        assert {f"--history={lake}", f"--samples={lake}", f"--load-models={lake}/models"} < set(container["args"])


class TestReports:
    """The live page: off by default."""

    def test_only_where_it_is_asked_for(self) -> None:
        """The port is open, in a Service and for those who may connect, only with ``report.enabled``."""
        on = ("--set", "service.enabled=true", "--set", "networkPolicy.enabled=true")
        for more, open_ in ((), False), (("--set", "report.enabled=true"), True):
            manifests = rendered("default", *on, *more)
            (operator,) = of_kind(manifests, "Deployment")["spec"]["template"]["spec"]["containers"]
            assert ("--report-port=8082" in operator["args"]) is open_
            assert ({"name": "report", "containerPort": 8082} in operator["ports"]) is open_
            ports = {port["name"]: port["targetPort"] for port in of_kind(manifests, "Service")["spec"]["ports"]}
            assert (ports.get("report") == "report") is open_
            ingress = of_kind(manifests, "NetworkPolicy")["spec"]["ingress"]
            assert ([{"port": "report", "protocol": "TCP"}] in [rule["ports"] for rule in ingress]) is open_

    def test_who_may_connect_and_with_which_tokens(self) -> None:
        manifests = rendered("production")
        (rule,) = (
            rule
            for rule in of_kind(manifests, "NetworkPolicy")["spec"]["ingress"]
            if rule["ports"][0]["port"] == "report"
        )
        assert rule["from"] == [{"podSelector": {"matchLabels": {"app": "oauth2-proxy"}}}]
        (operator,) = of_kind(manifests, "Deployment")["spec"]["template"]["spec"]["containers"]
        assert "--report-audience=kafka-rebalance-report" in operator["args"]


class TestSpark:
    """The load model Job as the driver of executors in Pods of their own."""

    def template(self, *arguments: str) -> tuple[dict[str, str], dict[str, Any]]:
        """Spark's settings, and the Pod that it makes executors of."""
        data = of_kind(rendered("spark", *arguments), "ConfigMap", f"{NAME}-spark")["data"]
        lines = [line.split(" ", 1) for line in data["spark-defaults.conf"].splitlines() if not line.startswith("#")]
        return dict(lines), yaml.safe_load(data["executor.yaml"])

    def test_only_where_it_is_asked_for(self) -> None:
        """Otherwise there is no account, role or token."""
        names = {m["metadata"]["name"] for case in CASES if case != "spark" for m in rendered(case)}
        assert not [name for name in names if name.endswith("-spark")]

    def test_executors_pass_pod_security_and_have_the_lake(self) -> None:
        """As restricted as all Pods: no token, a read-only root, the image and the account of the others."""
        settings, executor = self.template()
        (container,) = executor["spec"]["containers"]
        job = of_kind(rendered("spark"), "CronJob", f"{NAME}-load-model")["spec"]["jobTemplate"]["spec"]["template"]
        (driver,) = job["spec"]["containers"]
        assert container["securityContext"] == driver["securityContext"]
        assert executor["spec"]["securityContext"] == job["spec"]["securityContext"]
        assert executor["spec"]["automountServiceAccountToken"] is False
        assert settings["spark.kubernetes.container.image"] == container["image"] == driver["image"]
        assert [m for m in driver["volumeMounts"] if m["name"] == "lake"] == [
            m for m in container["volumeMounts"] if m["name"] == "lake"
        ]
        assert container["command"][-1] == "kafka_rebalance.pipeline.spark_executor"

    def test_the_driver_may_only_handle_pods(self) -> None:
        """In the namespace of the release, by an account of its own."""
        manifests = rendered("spark")
        role = of_kind(manifests, "Role", f"{NAME}-spark")
        assert {(g, r) for g, r, _ in triples(role["rules"])} == {("", "pods")}
        binding = of_kind(manifests, "RoleBinding", f"{NAME}-spark")
        account = of_kind(manifests, "ServiceAccount", f"{NAME}-spark")["metadata"]
        job = of_kind(manifests, "CronJob", f"{NAME}-load-model")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        assert [subject["name"] for subject in binding["subjects"]] == [account["name"]] == [job["serviceAccountName"]]
        assert binding["roleRef"]["name"] == role["metadata"]["name"]

    def test_windows_are_computed_in_the_same_way(self) -> None:
        """By executors, with the same account; the history is small enough for one Pod."""
        pods = {where.rpartition("-")[2]: t["spec"] for where, t in pod_templates(rendered("spark")).items()}
        drivers = [name for name in pods if "--master=k8s" in pods[name]["containers"][0]["args"]]
        assert sorted(drivers) == ["model", "windows"]
        assert pods["windows"]["serviceAccountName"] == pods["model"]["serviceAccountName"]
        assert "serviceAccountName" not in pods["history"]

    def test_settings(self) -> None:
        """Numbers of the values, and more settings as they are."""
        settings, _ = self.template("--set", "pipeline.spark.executorMemory=3g")
        assert (settings["spark.executor.instances"], settings["spark.executor.memory"]) == ("3", "3g")
        assert settings["spark.executor.extraJavaOptions"] == "-XX:+UseSerialGC"

    def test_driver_and_executors_answer_no_other_pod(self) -> None:
        """Spark makes a secret for each job. Without it, every Pod that reaches the driver can give it orders."""
        settings, _ = self.template()
        assert settings["spark.authenticate"] == settings["spark.network.crypto.enabled"] == "true"

    def test_the_network_policy_lets_driver_and_executors_talk(self) -> None:
        """At the ports of the settings, among Pods of the release, which executors are."""
        settings, executor = self.template()
        policy = of_kind(rendered("spark"), "NetworkPolicy")["spec"]
        ports = {int(settings[name]) for name in ("spark.driver.port", "spark.blockManager.port")}
        for way, peers in (("ingress", "from"), ("egress", "to")):
            (rule,) = [rule for rule in policy[way] if {port["port"] for port in rule["ports"]} == ports]
            (peer,) = rule[peers]
            assert peer["podSelector"]["matchLabels"].items() <= executor["metadata"]["labels"].items()
        assert policy["podSelector"]["matchLabels"].items() <= executor["metadata"]["labels"].items()


class TestObjects:
    @pytest.mark.parametrize("case", CASES)
    def test_name_only_paths_that_the_operator_serves(self, case: str) -> None:
        """Probes, and anything else that would send requests to the operator."""
        manifests = rendered(case)
        scraped = {PATH} if any(manifest["kind"] == "PodMonitor" for manifest in manifests) else set()
        assert {path for manifest in manifests for path in _http_paths(manifest)} == set(PROBES) | scraped

    @pytest.mark.parametrize("case", CASES)
    def test_have_a_place_and_the_recommended_labels(self, case: str) -> None:
        recommended = ("name", "instance", "component", "version", "managed-by", "part-of")
        for manifest in rendered(case):
            labels = manifest["metadata"]["labels"]
            assert not [name for name in recommended if f"app.kubernetes.io/{name}" not in labels]
            clusterwide = manifest["kind"].startswith(("Cluster", "CustomResourceDefinition", "ValidatingAdmission"))
            assert ("namespace" in manifest["metadata"]) is not clusterwide

    def test_a_disruption_budget_only_for_several(self) -> None:
        """With one replica it would block a node drain."""
        assert of_kind(rendered("production"), "PodDisruptionBudget")
        assert not [m for m in rendered() if m["kind"] == "PodDisruptionBudget"]

    def test_recreate_has_no_rolling_update(self) -> None:
        """helm merges maps: the API server would refuse the remaining default of the other strategy."""
        assert of_kind(rendered("pipeline"), "Deployment")["spec"]["strategy"] == {"type": "Recreate"}

    def test_the_image_by_tag_or_digest(self) -> None:
        def image(*arguments: str) -> str:
            found: str = of_kind(rendered("default", *arguments), "Deployment")["spec"]["template"]["spec"][
                "containers"
            ][0]["image"]
            return found

        version = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))["appVersion"]
        digest = "sha256:" + "a" * 64
        assert image() == f"{NAME}:{version}"
        assert image("--set", "image.repository=r/x,image.tag=t") == "r/x:t"
        assert image("--set", f"image.tag=t,image.digest={digest}") == f"{NAME}@{digest}"


def _http_paths(node: object) -> Iterator[str]:
    """Every `path` beside a `port`: of a probe, a ServiceMonitor's endpoint, a route."""
    if isinstance(node, dict):
        if "port" in node and "path" in node:
            yield node["path"]
        for value in node.values():
            yield from _http_paths(value)
    elif isinstance(node, list):
        for value in node:
            yield from _http_paths(value)


class TestSchema:
    def test_is_closed_and_complete(self) -> None:
        """The schema has exactly the values of the chart, at every level that we define."""
        assert set(SCHEMA["properties"]) - {"global", "enabled"} == set(VALUES)
        pending = [(SCHEMA["properties"][name], VALUES[name], name) for name in VALUES]
        while pending:
            schema, value, where = pending.pop()
            if "properties" not in schema:
                continue
            assert schema["additionalProperties"] is False, where
            assert set(schema["properties"]) == set(value), where
            pending += [(schema["properties"][name], value[name], f"{where}.{name}") for name in value]
