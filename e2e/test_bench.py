"""The bench provides what the other tests rely on: real servers, checks with Kafka's tools, and a complete cleanup."""

import json
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from e2e.bench.judge import Judge, PartitionState
from e2e.bench.kafka import KafkaCluster, racks_of
from e2e.bench.kafka_properties import SASL_USERS
from e2e.bench.kube import KubeCluster, KubectlError
from e2e.bench.load import Traffic, create_topics, fill
from e2e.bench.pki import write_kubeconfig
from e2e.bench.waiting import wait_until
from e2e.bench.watching import Watcher

_REFUSED = KafkaError._AUTHENTICATION  # noqa: SLF001
# Holds a cluster until it is killed; prints which processes it started.
_HOLDER = """
import threading
from e2e.bench.kafka import KafkaCluster, racks_of
from e2e.bench.kafka_properties import CONTROLLER_ID

cluster = KafkaCluster(racks_of([1]))
starter = threading.Thread(target=cluster.start)
starter.start()
starter.join()
print(cluster.directory, cluster.pid(1), cluster.pid(CONTROLLER_ID), flush=True)
threading.Event().wait()
"""


@pytest.mark.brokers
class TestKafkaCluster:
    """The shared brokers."""

    @pytest.fixture(autouse=True)
    def topics(self, kafka: KafkaCluster) -> Iterator[None]:
        """Delete what a test creates: later ones plan all topics of the cluster."""
        admin = kafka.admin()
        before = admin.list_topics(timeout=60).topics.keys()
        yield
        created = [name for name in admin.list_topics(timeout=60).topics.keys() - before if not name.startswith("__")]
        for done in admin.delete_topics(created).values() if created else ():
            done.result(timeout=60)

    def test_judge_sees_what_was_created(self, kafka: KafkaCluster, judge: Judge, unique: Callable[[str], str]) -> None:
        """Kafka's own tools confirm the replicas, the leader and the configs of a topic."""
        topic = unique("judged")
        create_topics(kafka, {topic: [[1, 2, 3], [4, 5, 1]]}, {"retention.ms": "86400000"})
        states = judge.describe_topics(topic)
        assert states[topic, 0] == PartitionState((1, 2, 3), 1, frozenset({1, 2, 3}))
        assert states[topic, 1].replicas == (4, 5, 1)
        assert judge.topic_configs(topic) == {topic: {"retention.ms": "86400000"}}
        assert judge.list_reassignments() == {}
        wrong = judge.verify({(topic, 0): [1, 2, 3], (topic, 1): [1, 5, 4]})
        assert len(wrong) == 1
        assert f"{topic}-1" in wrong[0]

    @pytest.mark.campaign
    def test_no_record_is_lost_when_a_broker_is_killed(
        self, kafka: KafkaCluster, judge: Judge, unique: Callable[[str], str]
    ) -> None:
        """A broker killed with -9 is noticed and comes back into the ISR, and the traffic loses nothing."""
        topic = unique("traffic")
        create_topics(kafka, {topic: [[3, 1, 2], [1, 2, 3]]}, {"min.insync.replicas": "2"})
        fill(kafka, {(topic, 0): 100_000, (topic, 1): 100_000})
        traffic = Traffic(kafka, [topic], rate=50).start()
        wait_until("the traffic flows", lambda: traffic.consumed > 20)
        kafka.kill9(3)
        kafka.wait_gone(3)
        assert judge.describe_topics(topic)[topic, 0].isr == {1, 2}
        kafka.start_brokers(3)
        wait_until("broker 3 is in sync", lambda: judge.describe_topics(topic)[topic, 0].isr == {1, 2, 3}, every=1)
        report = traffic.stop()
        assert report.clean, report
        assert report.consumed > 20

    @pytest.mark.campaign
    def test_broker_joins_and_leaves(self, kafka: KafkaCluster) -> None:
        """A new broker joins the cluster; a removed one is unregistered."""
        kafka.add({6: "r3"})
        try:
            assert 6 in _known(kafka)
        finally:
            kafka.remove(6)
        assert _known(kafka) == {1, 2, 3, 4, 5}


@pytest.mark.brokers
@pytest.mark.campaign
class TestSasl:
    """A cluster that requires authentication."""

    def test_only_the_right_password_gets_in(self) -> None:
        """PLAIN and SCRAM accept the user with the right password and report a wrong one."""
        with KafkaCluster(racks_of([1]), sasl=True) as cluster:
            for mechanism in ("PLAIN", "SCRAM-SHA-512"):
                user = {"sasl.mechanism": mechanism, "sasl.username": "operator"}
                right = AdminClient(cluster.client_config(**user, **{"sasl.password": SASL_USERS["operator"]}))
                assert set(right.list_topics(timeout=120).brokers) == {1}
                said: list[int] = []
                guessed = {"sasl.password": "guess", "error_cb": lambda error, said=said: said.append(error.code())}
                wrong = AdminClient(cluster.client_config(**user, **guessed))
                with pytest.raises(KafkaException):
                    wrong.list_topics(timeout=3)
                # Any failure ends the call above: a slow broker, too.
                wait_until("the password is refused", lambda wrong=wrong, said=said: wrong.poll(0) or _REFUSED in said)


@pytest.mark.apiserver
class TestKubeCluster:
    """The API server."""

    def test_nobody_is_let_in_without_rights(self, kube: KubeCluster, tmp_path: Path) -> None:
        """A wrong token is unauthorized; a service account without a role is forbidden."""
        nobody = tmp_path / "nobody.kubeconfig"
        view = json.loads(kube.kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json"))
        write_kubeconfig(nobody, view["clusters"][0]["cluster"], {"token": "wrong"})
        with pytest.raises(KubectlError, match=r"logged in|Unauthorized"):
            kube.kubectl("get", "namespaces", kubeconfig=nobody)
        account = kube.service_account_kubeconfig("default", "default")
        with pytest.raises(KubectlError, match="Forbidden"):
            kube.kubectl("get", "secrets", "--all-namespaces", kubeconfig=account)


class TestNothingIsLeftRunning:
    """Guarantees for everyone who runs the tests on their own machine."""

    @pytest.mark.brokers
    def test_brokers_die_with_a_holder_that_is_killed(self) -> None:
        """SIGKILL to the process that owns a cluster, even one started from a thread that ended, stops its brokers."""
        holder = subprocess.Popen([sys.executable, "-c", _HOLDER], stdout=subprocess.PIPE, text=True)
        assert holder.stdout is not None
        directory, *pids = holder.stdout.readline().split()
        assert len(pids) == 2
        assert all(_runs(int(pid), directory) for pid in pids)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        for pid in pids:
            wait_until(f"process {pid} is gone", lambda pid=pid: not _runs(int(pid), directory))
        shutil.rmtree(directory)


class _Once(Watcher):
    """Takes one sample, then waits to be stopped."""

    def __init__(self, look: Callable[[], None]) -> None:
        super().__init__("once")
        self._look = look

    def _watch(self, stop: threading.Event) -> None:
        self._look()
        stop.wait()


class TestWatcher:
    """Threads that watch a cluster during a test."""

    def test_watches_until_the_end_of_the_with(self) -> None:
        seen = threading.Event()
        with _Once(seen.set) as watcher:
            assert seen.wait(60)
            assert not watcher.over
        assert watcher.over

    def test_raises_at_the_end_what_broke_it_down(self) -> None:
        """Without this, a test whose watcher has failed would always pass."""

        def fail() -> None:
            raise KeyError("broken")

        with pytest.raises(RuntimeError, match="the once broke down") as told, _Once(fail) as watcher:
            watcher.wait_over(60)
        assert isinstance(told.value.__cause__, KeyError)


def _known(kafka: KafkaCluster) -> set[int]:
    return set(kafka.admin().list_topics(timeout=120).brokers)


def _runs(pid: int, directory: str) -> bool:
    """Whether the process exists and is still the one that was started for this directory."""
    try:
        return directory.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
