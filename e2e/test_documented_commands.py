"""A reader carries out the documentation: the commands of the pages, on real brokers and a real API server.

`e2e/documented_commands.py` has the commands and the names that are replaced. A failure shows the command line and its
output.
"""

import contextlib
import json
import re
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.docs.pages import ROOT, blocks

from e2e import documented_commands as shown
from e2e.bench.kafka import KafkaCluster
from e2e.bench.kube import KubeCluster, OwnKubeCluster
from e2e.bench.ports import release_port, reserve_port
from e2e.bench.process import Child
from e2e.bench.waiting import wait_until
from e2e.lane import OPERATOR_NAMESPACE, TEAM
from e2e.reader import Reader
from e2e.rebalance import KIND, Rebalance
from e2e.world import FAST, FINE, ON_THREE, World

SIZE = 500_000
"""Bytes of a partition whose copy takes a quarter of a minute at SLOW."""
SLOW = {"leaderRate": "32Ki", "followerRate": "32Ki"}
SETTLED = {"brokerSettleTime": "10s"}
SLOWLY = {"throttle": SLOW, "execution": {**SETTLED, "parallelPartitionCount": 1}}
"""Instead of the rates of the pages: a rebalance that runs while the reader types."""
QUICKLY = {"throttle": FAST, "execution": SETTLED}
CREATED = re.compile(r"KafkaRebalance \S+/(\S+) created")
FINALIZER = "kafkarebalance.dev/rollback"
ACLS = ("org.apache.kafka.tools.AclCommand", "kafka.admin.AclCommand")
"""Of Kafka 4.3 and of 3.9."""
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


class TestLocally:
    """In a clone, without servers."""

    def test_plans_and_manifests(self, tmp_path: Path) -> None:
        reader = Reader(tmp_path)
        (tmp_path / "manifests").symlink_to("examples")
        for command in shown.LOCAL:
            assert reader.types(command) or command.startswith("source") or "-o report" in command

    def test_stores(self, tmp_path: Path) -> None:
        """The programs ask for passwords."""
        reader = Reader(tmp_path)
        password = "secret-1"
        make = f"keytool -genkeypair -alias kafka -keyalg EC -dname CN=kafka -storetype JKS -storepass {password}"
        reader.types(f"{make} -keystore keystore.jks -keypass {password}", f"{make} -keystore truststore.jks")
        for command in shown.STORES:
            reader.types(command, answer=f"{password}\n" * 3)
        assert "BEGIN CERTIFICATE" in (tmp_path / "ca.pem").read_text()
        assert "PRIVATE KEY" in (tmp_path / "client.pem").read_text()


@pytest.mark.brokers
@pytest.mark.campaign
class TestWithoutKubernetes:
    """`docs/getting-started.md`, second part, and `docs/cli.md`."""

    def test_read_plan_and_run(self, world: World, tmp_path: Path) -> None:
        topic = world.topic("orders", ON_THREE * 2, SIZE, batch_bytes=FINE)
        before = world.judge.describe_topics(topic)
        reader = Reader(tmp_path, bootstrap=world.kafka.bootstrap_servers, namespace="default")
        reader.writes("first.yaml", first(), **QUICKLY)
        for command in shown.READING:
            reader.types(command)
        run, report, back = shown.RUN_FIRST
        assert "Succeeded" in reader.types(run)
        assert world.judge.describe_topics(topic) != before
        reader.types(report)
        reader.types(back)
        assert world.judge.describe_topics(topic) == before

        reader.example("add-brokers.yaml", **SLOWLY)
        child = reader.starts(shown.RUN)
        try:
            wait_until("a copy is in flight", lambda: world.in_flight(topic))
            for command in shown.DURING_RUN:
                reader.types(command)
            wait_until("the run ends", lambda: not child.running)
            assert child.stop() == 0, child.tail()
        finally:
            child.kill9()
        world.assert_tidy()


@pytest.fixture(scope="class")
def namespace(kube: KubeCluster) -> Iterator[str]:
    """The namespace of the reader, which the operator watches."""
    kube.kubectl("create", "namespace", TEAM)
    yield TEAM
    kube.kubectl("delete", "namespace", TEAM, timeout=300)


@pytest.fixture
def reader(world: World, namespace: str, tmp_path: Path) -> Iterator[Reader]:
    """A reader with the tools of Kafka; at the end, all resources are deleted."""
    port = reserve_port()
    reader = Reader(
        tmp_path,
        world.kube,
        bootstrap=world.kafka.bootstrap_servers,
        namespace=namespace,
        records=OPERATOR_NAMESPACE,
        of_records=f"--operator-namespace {OPERATOR_NAMESPACE}",
        page_port=str(port),
        report_port=str(world.operator.report_port),
    )
    reader.installs("kafka-reassign-partitions.sh", *world.kafka.jars.java(REASSIGN, role="tool"))
    yield reader
    world.kube.kubectl("delete", "krb,krt,krc", "--all", "-n", namespace)
    release_port(port)


@pytest.mark.brokers
@pytest.mark.apiserver
@pytest.mark.campaign
class TestOnKubernetes:
    """Every other page."""

    def test_the_tutorial(self, world: World, reader: Reader) -> None:
        """`docs/getting-started.md`, third part."""
        before = self._skewed(world)
        reader.writes("first.yaml", first(), **SLOWLY)
        *commands, undo = shown.FIRST
        for command in commands:
            said = reader.types(command)
        assert "Succeeded" in said
        reader.types(undo, answer="y\n")
        self._named(world, "first").wait_state("Undone")
        assert world.judge.describe_topics(*{topic for topic, _ in before}) == before

    def test_look_and_change(self, world: World, reader: Reader) -> None:
        """While a rebalance runs; at the end Kafka's own tool moves everything back."""
        before = self._skewed(world)
        limits = yaml.safe_load((ROOT / "examples" / "throttle.yaml").read_text())
        reader.writes("limits.yaml", {**limits, "metadata": {"name": "limits", "namespace": "kafka"}})
        reader.types("kubectl apply -f limits.yaml")
        rebalance = self._running(world, reader)
        for command in shown.LOOKING:
            assert reader.types(command) or command.endswith("run.html")
        for command in shown.CHANGING:
            reader.types(command)
        self._pages(reader)
        for command in shown.GOING_ON:
            reader.types(command)
        *printed, _ = shown.FINISHED
        for command in printed:
            reader.types(command)
        self._deleted(reader, rebalance)
        reader.types(shown.BY_KAFKAS_TOOL)
        topics = {topic for topic, _ in before}
        wait_until(
            "everything is back",
            lambda: self._replicas(world, topics) == {key: state.replicas for key, state in before.items()},
        )
        wait_until("nothing is in flight", lambda: not world.judge.list_reassignments())
        # The operator may have applied its limit to the copies, and then restores the rates of Kafka's tool.
        wait_until("the operator has no throttle", lambda: "not checked" not in reader.types(shown.CLEARING), every=1)
        world.assert_tidy()

    def test_end(self, world: World, reader: Reader) -> None:
        """The runbook, each time with a rebalance that runs."""
        self._skewed(world)
        for command in shown.ENDING:
            rebalance = self._running(world, reader)
            reader.types(command, answer="y\n")
            rebalance.wait_gone()
            # After Abandon, Kafka finishes the copy; until then the next rebalance takes it for one of others.
            wait_until("Kafka has finished", lambda: not world.judge.list_reassignments())
        rebalance = self._running(world, reader)
        reader.types(shown.LET_GO)
        rebalance.delete()
        rebalance.wait_gone()
        wait_until("Kafka has finished", lambda: not world.judge.list_reassignments())
        world.assert_tidy()

    def test_approve_and_undo(self, world: World, reader: Reader) -> None:
        """A plan that waits."""
        before = self._skewed(world)
        reader.example("add-brokers.yaml", approval={"policy": "Manual"}, **SLOWLY)
        reader.types(shown.APPLY[1])
        rebalance = self._named(world, "add-brokers")
        rebalance.wait_state("AwaitingApproval")
        for command in shown.APPROVAL:
            reader.types(command, answer="y\n")
        rebalance.patch(throttle=FAST)
        rebalance.wait_for("Succeeded")
        reader.types(shown.FINISHED[-1], answer="y\n")
        rebalance.wait_state("Undone")
        assert world.judge.describe_topics(*{topic for topic, _ in before}) == before

    def test_execute_and_drain(self, world: World, reader: Reader) -> None:
        """A file of Kafka's tool, also when it is done, and brokers that are emptied with a KafkaConnection."""
        self._skewed(world)
        reader.types("kafka-rebalance snapshot --bootstrap-servers kafka-0:9092 -o cluster.json")
        reader.types("kafka-rebalance plan --cluster cluster.json -o json > plan.json")
        reader.types(shown.VERIFY, code=4)
        printed, create, again = shown.EXECUTE
        reader.types(printed)
        self._named(world, made(reader.types(create))).wait_for("Succeeded")
        reader.types(shown.VERIFY)
        self._named(world, made(reader.types(again))).wait_for("Ready")
        self._named(world, made(reader.types(shown.DECOMMISSION))).wait_for("Succeeded")
        reader.types("kubectl delete krb --all")

        servers = {"bootstrapServers": world.kafka.bootstrap_servers}
        reader.writes("limits.yaml", {**manifest("KafkaReassignmentThrottle", "limits"), "spec": {"kafka": servers}})
        reader.writes("connection.yaml", {**manifest("KafkaConnection", "production"), "spec": servers})
        reader.types("kubectl apply -f limits.yaml -f connection.yaml")
        for command in shown.DRAIN:
            said = reader.types(command)
            if CREATED.search(said):
                reader.names["drained"] = f"krb/{made(said)}"
                self._named(world, made(said)).wait_for("Succeeded")

    def test_manifests(self, reader: Reader) -> None:
        """The API server accepts each resource of a page and of the examples."""
        texts = [block.text for block in blocks("yaml") if "kafkarebalance.dev/v1alpha1" in block.text]
        texts += [path.read_text() for path in (ROOT / "examples").glob("*.yaml")]
        assert len(texts) > 15
        for text in texts:
            body = yaml.safe_load(text)
            reader.writes("manifests/one.yaml", {**body, "metadata": {**body["metadata"], "namespace": "kafka"}})
            reader.types("kubectl create --dry-run=server --validate=strict -f manifests/one.yaml")

    def test_secrets(self, reader: Reader) -> None:
        """`docs/authentication.md`."""
        for command in shown.SECRETS:
            reader.types(command, PASSWORD="secret-1", SECRET="secret-2")

    def _skewed(self, world: World) -> dict:
        topic = world.topic("orders", ON_THREE * 2, SIZE, batch_bytes=FINE)
        return world.judge.describe_topics(topic)

    def _named(self, world: World, name: str) -> Rebalance:
        return Rebalance(world.kube, name, {}, TEAM)

    def _replicas(self, world: World, topics: set[str]) -> dict:
        return {key: state.replicas for key, state in world.judge.describe_topics(*topics).items()}

    def _running(self, world: World, reader: Reader) -> Rebalance:
        """A slow add-brokers with a copy in flight."""
        reader.example("add-brokers.yaml", **SLOWLY)
        reader.types(shown.APPLY[1])
        rebalance = self._named(world, "add-brokers")
        rebalance.until("a copy is in flight", lambda status: status.get("currentBatchSize"))
        return rebalance

    def _pages(self, reader: Reader) -> None:
        """The report that the command line serves, and the one of the operator."""
        with served(reader.starts(shown.SERVE)):
            page = f"http://127.0.0.1:{reader.names['page_port']}/"
            wait_until("the page is served", lambda: answers(page))
        try:
            for command in shown.LIVE_PAGE:
                reader.types(command)
            said = wait_until(
                "the operator may create reviews",
                lambda: (said := reader.types(shown.TOKEN, shown.CURL)).count("<html") and said,
            )
            assert "add-brokers" in said
        finally:
            reader.types("kubectl delete clusterrole,clusterrolebinding kafka-rebalance-reports --ignore-not-found")

    def _deleted(self, reader: Reader, rebalance: Rebalance) -> None:
        """After success a deletion moves nothing; the records stay."""
        reader.names["uid"] = rebalance.uid
        rebalance.delete()
        rebalance.wait_gone()
        assert rebalance.uid in reader.types(shown.GONE, code=1)
        for command in shown.DELETED:
            reader.types(command)


@pytest.mark.brokers
@pytest.mark.campaign
class TestPermissions:
    """`docs/security.md`, with Kafka's own tool."""

    def test_the_acls(self, tmp_path: Path) -> None:
        """Both users have what the page grants, and nothing else."""
        with KafkaCluster({1: "r1"}, sasl=True, acls=True) as kafka:
            reader = Reader(tmp_path, bootstrap=kafka.bootstrap_servers)
            login = ("--command-config", str(kafka.tool_config))
            tool = next(name for name in ACLS if has_class(kafka, name))
            reader.installs("kafka-acls.sh", *kafka.jars.java(tool, role="tool"), after=login)
            for command in shown.ACLS:
                reader.types(command)
            listed = kafka.run_tool(tool, "--list", "--bootstrap-server", kafka.bootstrap_servers, *login)
        granted = {
            user: sorted(re.findall(rf"principal=User:{user}, host=\*, operation=(\w+), permissionType=ALLOW", listed))
            for user in ("kafka-rebalance", "kafka-sampler")
        }
        assert granted == {
            "kafka-rebalance": ["ALTER", "ALTER_CONFIGS", "ALTER_CONFIGS", "DESCRIBE"],
            "kafka-sampler": ["DESCRIBE", "DESCRIBE", "DESCRIBE", "DESCRIBE_CONFIGS"],
        }


@pytest.mark.apiserver
@pytest.mark.campaign
class TestInstall:
    """`docs/install.md` without Helm, on an API server of its own."""

    def test_install_and_remove(self, tmp_path: Path) -> None:
        with OwnKubeCluster() as kube:
            reader = Reader(tmp_path, kube)
            for command in shown.INSTALL:
                reader.types(command)
            with self._operator(reader):
                for command in shown.INSTALLED:
                    assert reader.types(command)
            for command in shown.APPLY:
                reader.types(command)
            for command in shown.RETIRE:
                self._hold(kube)
                reader.types(command)
                assert not self._finalizers(kube)
            self._hold(kube)
            loop = next(block.text for block in blocks("console") if block.text.startswith("for kind in"))
            assert all(command in " ".join(loop.split()) for command in shown.FINALIZERS)
            reader.types(loop)
            assert not self._finalizers(kube)
            reader.types(shown.REMOVE)

    @contextlib.contextmanager
    def _operator(self, reader: Reader) -> Iterator[None]:
        with served(reader.starts(shown.OPERATOR)) as child:
            wait_until("the operator is ready", lambda: "operator ready" in child.tail(200))
            yield

    def _hold(self, kube: KubeCluster) -> None:
        """Add the finalizer as an operator does that reaches Kafka."""
        patch = json.dumps({"metadata": {"finalizers": [FINALIZER]}})
        kube.kubectl("patch", KIND, "add-brokers", "-n", "kafka", "--type=merge", "-p", patch)

    def _finalizers(self, kube: KubeCluster) -> object:
        return kube.get(KIND, "add-brokers", "-n", "kafka")["metadata"].get("finalizers")


@contextlib.contextmanager
def served(child: Child) -> Iterator[Child]:
    """A command in the background, stopped at the end."""
    try:
        yield child
        child.stop()
    finally:
        child.kill9()


def has_class(kafka: KafkaCluster, name: str) -> bool:
    """Whether the jars of this version of Kafka have the class."""
    path = f"{name.replace('.', '/')}.class"
    return any(path in zipfile.ZipFile(jar).namelist() for jar in kafka.jars.libs.glob("kafka*.jar"))


def answers(url: str) -> bool:
    """Whether a page is there."""
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=30) as answer:
        return bool(answer.status == 200)
    return False


def manifest(kind: str, name: str) -> dict[str, object]:
    """A resource without a spec."""
    metadata = {"name": name, "namespace": "kafka"}
    return {"apiVersion": "kafkarebalance.dev/v1alpha1", "kind": kind, "metadata": metadata}


def first() -> dict:
    """The manifest of the tutorial."""
    (found,) = [block.text for block in blocks("yaml") if block.page == "docs/getting-started.md"]
    return yaml.safe_load(found)


def made(said: str) -> str:
    """The name of the KafkaRebalance that a command has created."""
    found = CREATED.search(said)
    assert found, said
    return found[1]
