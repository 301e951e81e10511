"""The chart by its values: valid ones are rendered, even unusual ones; all others are refused by name."""

import shutil
from pathlib import Path

import pytest
import yaml
from tests.chart.rendering import CHART, KUBE_VERSION, NAME, HelmError, helm, of_kind, parsed, rendered, rendered_text

from kafka_rebalance.cli.commands.retire_command import LET_GO_SECONDS, STOP_SECONDS
from kafka_rebalance.units import parse_duration

LONG_NAME = f'pipeline={{"enabled": true, "clusters": [{{"name": "{"x" * 40}", "bootstrapServers": "k:1"}}]}}'
SAME_NAME = (
    'pipeline={"enabled": true, "clusters": [{"name": "prod", "bootstrapServers": "k:1"}, '
    '{"name": "prod", "bootstrapServers": "k:2"}]}'
)

LIMITED = ("--set", "networkPolicy.enabled=true", "--set-json", "networkPolicy.kafka.to=[{}]", "--set-json")
"""To addresses of Kafka. What these cases refuse would leave any address reachable at the ports of another rule."""


class TestNames:
    """Any valid name of a release, a namespace or a label."""

    NUMBERS = ("--set-string", "nameOverride=456,commonLabels.build=789,priorityClassName=1", "--set-json",
               'watchNamespaces=["123", "null"]')  # fmt: skip

    def test_yaml_takes_none_for_something_else(self) -> None:
        manifests = parsed(rendered_text(*self.NUMBERS, release="123", namespace="2024"))
        for manifest in manifests:
            metadata = manifest["metadata"]
            told = [metadata["name"], metadata.get("namespace", ""), *metadata["labels"].values()]
            assert [value for value in told if not isinstance(value, str)] == [], metadata["name"]
        assert {m["metadata"].get("namespace") for m in manifests} == {"123", "null", "2024", None}
        deployment = of_kind(manifests, "Deployment")
        assert deployment["metadata"]["name"] == "123-456"
        assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == "123-456"
        assert deployment["spec"]["template"]["spec"]["priorityClassName"] == "1"
        assert of_kind(manifests, "Role", "-uninstall")["rules"][0]["resourceNames"] == ["123-456"]

    @pytest.mark.parametrize(
        ("release", "arguments", "name"),
        [
            ("kafka.prod", (), "kafka-prod-kafka-rebalance-operator"),
            ("x", ("--set", f"fullnameOverride={'a' * 39}.b"), "a" * 39),
            ("x", ("--set", f"fullnameOverride={'a' * 38}--b"), "a" * 38),
        ],
    )
    def test_dots_and_cut_ends(self, release: str, arguments: tuple[str, ...], name: str) -> None:
        """A Service name contains no dots, and no name ends with a dash."""
        manifests = parsed(rendered_text(*arguments, "--set", "service.enabled=true", release=release))
        assert of_kind(manifests, "Service")["metadata"]["name"] == name

    def test_no_label_comes_twice(self) -> None:
        """Strict parsers refuse duplicate keys, and the others use only one of them."""
        same = '{"team": "a", "app.kubernetes.io/part-of": "platform", "app.kubernetes.io/component": "mine"}'
        more = '{"team": "b", "app.kubernetes.io/name": "mine"}'
        arguments = ["--set-json", f"commonLabels={same}", "--set-json", f"podLabels={more}"]
        arguments += ["--skip-schema-validation"]
        text = rendered_text(*arguments)
        for node in yaml.compose_all(text, yaml.CSafeLoader):
            _assert_no_key_twice(node)
        deployment = of_kind(parsed(text), "Deployment")
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert (deployment["metadata"]["labels"]["team"], labels["team"]) == ("a", "b")
        assert labels["app.kubernetes.io/part-of"] == "platform"
        assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
        assert labels["app.kubernetes.io/component"] == "operator"


def _assert_no_key_twice(node: yaml.Node | None) -> None:
    if isinstance(node, yaml.MappingNode):
        keys = [key.value for key, _ in node.value]
        assert len(keys) == len(set(keys)), keys
        for _, value in node.value:
            _assert_no_key_twice(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _assert_no_key_twice(value)


class TestRefusals:
    """Invalid values are refused by name before anything is installed."""

    @pytest.mark.parametrize(
        ("value", "said"),
        [
            ("replica=2", "replica"),
            ("image.tags=x", "tags"),
            ("pipeline.lake.sise=1Gi", "sise"),
            ("networkPolicy.kafka.port=9092", "port"),
            ("replicas=-1", "replicas"),
            ("replicas=many", "replicas"),
            ("logLevel=trace", "logLevel"),
            ("leaseDuration=30", "leaseDuration"),
            ("uninstall.underWay=force", "underWay"),
            ("uninstall.timeout=4 minutes", "timeout"),
            ("image.digest=sha256:abc", "digest"),
            ("watchNamespaces={a,a}", "watchNamespaces"),
            ("watchNamespaces={team-*}", "watchNamespaces"),
            ("watchNamespaces=kafka", "watchNamespaces"),
            ("strategy.type=OnDelete", "strategy"),
            ("pipeline.clusters[0].name=prod", "bootstrapServers"),
            ("pipeline.clusters[0].prometheus.url=http://u:p@h", "url"),
            ("pipeline.clusters[0].prometheus.tokenKey=token", "secretName"),
            ("pipeline.lake.accessModes={ReadOnlyMany}", "accessModes"),
            ("pipeline.lake.accessModes={ReadWriteOncePod}", "accessModes"),  # would exclude the Pods of the pipeline
            (r"podLabels.app\.kubernetes\.io/component=x", "podLabels"),
            (r"commonLabels.helm\.sh/chart=x", "commonLabels"),
        ],
    )
    def test_by_the_schema(self, value: str, said: str) -> None:
        with pytest.raises(HelmError, match=rf"(?s)values don't meet the specifications.*{said}"):
            rendered("default", "--set", value)

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("--set", "serviceAccount.create=false"), "serviceAccount.name has to be given"),
            (("--set-json", LONG_NAME), "more than 52 characters"),
            (("--set-json", SAME_NAME), "pipeline.clusters contains prod twice"),
            (("--set", "leaseDuration=2s"), "it must be at least 3s"),
            ((*LIMITED, "networkPolicy.apiServer.to=[{}]"), "without networkPolicy.dns.to"),
            ((*LIMITED, "networkPolicy.dns.to=[{}]"), "without networkPolicy.apiServer.to"),
            ((*LIMITED, "networkPolicy.dns.ports=[]"), "without networkPolicy.apiServer.to"),
            (("--kube-version", "1.28.0"), "chart requires kubeVersion"),
        ],
    )
    def test_by_the_chart(self, arguments: tuple[str, ...], said: str) -> None:
        with pytest.raises(HelmError, match=said):
            rendered("default", *arguments)


class TestTaken:
    """Valid but unusual values."""

    def test_as_a_dependency_under_a_condition(self, tmp_path: Path) -> None:
        """Helm passes the condition to the subchart as a value."""
        shutil.copytree(CHART, tmp_path / "charts" / NAME)
        dependency = {"name": NAME, "version": "*", "condition": f"{NAME}.enabled"}
        chart = {"apiVersion": "v2", "name": "platform", "version": "1.0.0", "dependencies": [dependency]}
        (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(chart), encoding="utf-8")
        (tmp_path / "values.yaml").write_text(yaml.safe_dump({NAME: {"enabled": True}}), encoding="utf-8")
        assert "kind: Deployment" in helm("template", "x", str(tmp_path), "--kube-version", KUBE_VERSION)
        assert "kind: Deployment" not in helm("template", "x", str(tmp_path), "--set", f"{NAME}.enabled=false")

    def test_a_schedule_by_name(self) -> None:
        manifests = rendered("pipeline", "--set", "pipeline.loadModel.schedule=@daily")
        assert of_kind(manifests, "CronJob", "-load-model")["spec"]["schedule"] == "@daily"

    def test_no_dns(self) -> None:
        """A rule without ports would allow all ports."""
        (policy,) = (m for m in rendered("production", "--set-json", "networkPolicy.dns.ports=[]")
                     if m["kind"] == "NetworkPolicy")  # fmt: skip
        ports = [[port["port"] for port in rule["ports"]] for rule in policy["spec"]["egress"]]
        assert ports == [[6443], [9092], [4317]]

    @pytest.mark.parametrize(("duration", "lasts"), [("1h30m", 5400), ("3s", 3), ("90m", 5400), ("2h5s", 7205)])
    def test_durations(self, duration: str, lasts: int) -> None:
        """The chart parses them like the commands do."""
        assert parse_duration(duration) == lasts
        job = of_kind(rendered("default", "--set", f"uninstall.timeout={duration}"), "Job")
        assert job["spec"]["activeDeadlineSeconds"] == lasts + 300


class TestDeadlines:
    """A Job whose Pod hangs or cannot start is terminated: it is obsolete, and the next one has to start."""

    def test_of_the_job_before_an_uninstall(self) -> None:
        """`retire` gets its full timeout."""
        job = of_kind(rendered("namespaced"), "Job")["spec"]
        assert job["activeDeadlineSeconds"] > parse_duration("10m") + STOP_SECONDS + LET_GO_SECONDS

    def test_of_the_pipeline(self) -> None:
        sampler = "pipeline.sampler.interval=1m30s,pipeline.sampler.count=20"
        deadlines = "pipeline.loadModel.deadline=1h,pipeline.compact.deadline=5m,pipeline.metrics.deadline=9m"
        deadlines += ",pipeline.windows.deadline=7m,pipeline.history.deadline=6m"
        manifests = rendered("pipeline", "--set", f"{sampler},{deadlines}")
        samplers = {"-sample-prod": 4200, "-sample-test": 4200}
        found = {
            suffix: of_kind(manifests, "CronJob", suffix)["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"]
            for suffix in (*samplers, "-metrics-prod", "-windows", "-load-model", "-history", "-compact")
        }
        assert found == samplers | {
            "-metrics-prod": 540,
            "-windows": 420,
            "-load-model": 3600,
            "-history": 360,
            "-compact": 300,
        }
