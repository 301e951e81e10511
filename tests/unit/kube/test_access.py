"""Finding the API server: an unusable kubeconfig results in a one-line error with the file name."""

import pytest

from kafka_rebalance.errors import Permanent
from kafka_rebalance.kube.access import configuration

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
