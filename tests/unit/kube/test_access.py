"""Finding the API server: an unusable kubeconfig results in a one-line error with the file name."""

import pytest

from kafka_rebalance.errors import Permanent
from kafka_rebalance.kube import access
from kafka_rebalance.kube.access import configuration, current_namespace

NO_SUCH_CONTEXT = "{apiVersion: v1, kind: Config, clusters: [], contexts: [], users: [], current-context: nowhere}"


def refusal(path):
    with pytest.raises(Permanent) as refused:
        configuration(str(path))
    assert refused.value.reason == "NoKubernetesAccess"
    return refused.value.message


class TestUnusable:
    """A misspelt path must not end in a stack trace."""

    @pytest.mark.parametrize("content", ["", "{bad: [", "hello", "[1, 2]", "\x00", NO_SUCH_CONTEXT, "clusters: 3"])
    def test_the_file_is_named_in_one_line(self, tmp_path, content):
        path = tmp_path / "kubeconfig"
        path.write_text(content)
        told = refusal(path)
        assert told.startswith(f"the kubeconfig {path} cannot be used: ")
        assert "\n" not in told

    def test_one_that_is_not_there_too(self, tmp_path):
        assert str(tmp_path / "nowhere") in refusal(tmp_path / "nowhere")

    def test_a_context_that_is_missing_is_named(self, tmp_path):
        path = tmp_path / "kubeconfig"
        path.write_text(NO_SUCH_CONTEXT)
        assert "nowhere" in refusal(path)

    def test_no_kubeconfig_and_no_pod(self, tmp_path, monkeypatch):
        """The error says where it looked."""
        monkeypatch.delenv("KUBECONFIG", raising=False)
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        with pytest.raises(Permanent, match=r"KUBECONFIG is not set, there is no ~/\.kube/config .* Pod"):
            configuration()


def test_a_kubeconfig_that_can_be_used(tmp_path):
    """The server is the one of the current context."""
    path = tmp_path / "kubeconfig"
    path.write_text(
        "{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}],"
        " clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: u, user: {token: t}}]}"
    )
    assert configuration(str(path)).host == "https://127.0.0.1:1"


TWO_CONTEXTS = (
    "{apiVersion: v1, kind: Config, current-context: one, contexts: ["
    "{name: one, context: {cluster: c, user: u, namespace: kafka}}, {name: two, context: {cluster: d, user: u}}],"
    " clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}, {name: d, cluster: {server: 'https://d:2'}}],"
    " users: [{name: u, user: {token: t}}]}"
)


class TestContexts:
    """The context decides about the server and the namespace, as for kubectl."""

    @pytest.fixture
    def path(self, tmp_path):
        path = tmp_path / "kubeconfig"
        path.write_text(TWO_CONTEXTS)
        return str(path)

    def test_the_server_of_another_context(self, path):
        assert configuration(path).host == "https://127.0.0.1:1"
        assert configuration(path, "two").host == "https://d:2"

    def test_a_context_that_does_not_exist_is_named(self, path):
        with pytest.raises(Permanent, match="three"):
            configuration(path, "three")

    def test_the_namespace(self, path):
        assert current_namespace(path) == "kafka"
        assert current_namespace(path, "two") == "default"
        assert current_namespace(path, "three") == "default"

    def test_of_several_files_the_first_current_context_counts(self, path, tmp_path, monkeypatch):
        other = tmp_path / "other"
        other.write_text("{current-context: two, contexts: [{name: two, context: {namespace: second}}]}")
        monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'nowhere'}:{path}:{other}")
        assert current_namespace() == "kafka"
        monkeypatch.setenv("KUBECONFIG", f"{other}:{path}")
        assert current_namespace() == "second"

    @pytest.mark.parametrize("content", ["", "[1]", "{bad: [", "contexts: 3", "contexts: [3]", "\x00"])
    def test_a_broken_file_is_reported_by_the_connection_only(self, tmp_path, content):
        broken = tmp_path / "kubeconfig"
        broken.write_text(content)
        assert current_namespace(str(broken)) == "default"

    def test_in_a_pod_it_is_that_of_the_pod(self, tmp_path, monkeypatch):
        """But a kubeconfig comes first."""
        monkeypatch.delenv("KUBECONFIG", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        mounted = tmp_path / "namespace"
        mounted.write_text("kafka-rebalance\n")
        monkeypatch.setattr(access, "_IN_CLUSTER_NAMESPACE", mounted)
        assert current_namespace() == "kafka-rebalance"
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
        assert current_namespace() == "default"

    def test_a_context_needs_a_kubeconfig(self, tmp_path, monkeypatch):
        monkeypatch.delenv("KUBECONFIG", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        with pytest.raises(Permanent, match="no context two: give --kubeconfig"):
            configuration(context="two")
