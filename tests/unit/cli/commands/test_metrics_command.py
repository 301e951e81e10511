"""pipeline metrics: its options. Other tests cover the reading, also with a real Prometheus (e2e)."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_rebalance.cli.commands.metrics_command import _authorization
from kafka_rebalance.cli.commands.pipeline_command import pipeline
from kafka_rebalance.errors import Permanent

LEAST = ["metrics", "--bootstrap-servers", "127.0.0.1:1", "--lake", "lake", "--prometheus"]


class TestAuthorization:
    def test_of_a_token_or_a_password_in_a_file(self, tmp_path):
        """The line break at the end of a file is not part of it."""
        (tmp_path / "token").write_text("abc.def\n")
        (tmp_path / "basic").write_text("user:pass:word\n")
        assert _authorization(tmp_path / "token", None) == "Bearer abc.def"
        assert _authorization(None, tmp_path / "basic") == "Basic dXNlcjpwYXNzOndvcmQ="
        assert _authorization(None, None) == ""

    @pytest.mark.parametrize("text", ["", "\n", "two\nlines-secret", "secret\u00e9", "sec\0ret"])
    def test_what_no_header_can_have_is_refused_without_it(self, tmp_path, text):
        """It is a secret, even if it is not valid."""
        file: Path = tmp_path / "token"
        file.write_text(text)
        with pytest.raises(Permanent, match=r"token does not have a token in one line of ASCII$") as refused:
            _authorization(file, None)
        assert "secret" not in refused.value.message

    def test_a_password_has_a_user(self, tmp_path):
        """USER:PASSWORD, as in curl."""
        (tmp_path / "basic").write_text("hunter2")
        with pytest.raises(Permanent, match="USER:PASSWORD") as refused:
            _authorization(None, tmp_path / "basic")
        assert "hunter2" not in refused.value.message


class TestUsage:
    @pytest.mark.parametrize(
        ("url", "why"),
        [("prometheus:9090", "not an http"), ("http://u:hunter2@p:9090", "write them into a file")],
    )
    def test_a_url_that_is_none(self, url, why):
        """Exit code 2, before any request, and without what may be a secret."""
        done = CliRunner().invoke(pipeline, [*LEAST, url])
        assert (done.exit_code, why in done.stderr, "hunter2" in done.output) == (2, True, False)

    def test_two_kinds_of_credentials(self, tmp_path):
        """One of them would be ignored."""
        (tmp_path / "f").write_text("a:b")
        files = ["--token-file", str(tmp_path / "f"), "--basic-auth-file", str(tmp_path / "f")]
        done = CliRunner().invoke(pipeline, [*LEAST, "http://p:9090", *files])
        assert done.exit_code == 2
        assert "exclude each other" in done.stderr
