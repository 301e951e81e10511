"""--command-config: the properties file of Kafka's own tools, and what the CLI refuses in it."""

import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import kafka_rebalance.cli.commands.snapshot_command as command
from kafka_rebalance.api.connection import SaslMechanism
from kafka_rebalance.cli.files.client_properties import connection_settings, parse_properties
from kafka_rebalance.cli.main import main
from kafka_rebalance.kafka.settings import ConnectionSettings, OAuthClient, kafka_python_config

SERVERS = "kafka-0:9092"
PASSWORD = "hunter2-hunter2"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SASL = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
HANDLER = "sasl.login.callback.handler.class=org.apache.kafka.common.security.oauthbearer"
ENDPOINT = "sasl.oauthbearer.token.endpoint.url=https://login.example.org/token\n"
OAUTH = f"security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n{HANDLER}.OAuthBearerLoginCallbackHandler\n{ENDPOINT}"
BEARER = "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
CLIENT = f'{BEARER} clientId="operator" clientSecret="{PASSWORD}";\n'
LOGIN = f'sasl.jaas.config={SCRAM} required username="operator" password="{PASSWORD}";\n'
TLS = "security.protocol=SSL\n"


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with cert.pem, key.pem, both in client.pem, and the encrypted key in locked.pem."""
    directory = tmp_path_factory.mktemp("pem")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=directory)

    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "key.pem")
    openssl("req", "-x509", *new_key, "-subj", "/CN=kafka", "-days", "2", "-out", "cert.pem")
    openssl("pkey", "-in", "key.pem", "-aes128", "-passout", f"pass:{PASSWORD}", "-out", "locked.pem")
    certificate, key = (directory.joinpath(name).read_text() for name in ("cert.pem", "key.pem"))
    # openssl pkcs12 writes these lines before each block.
    directory.joinpath("client.pem").write_text(
        f"Bag Attributes\n    friendlyName: me\n{key}subject=CN=me\n{certificate}"
    )
    return directory


def read(text: str) -> ConnectionSettings:
    return connection_settings(parse_properties(text.encode("iso-8859-1")), SERVERS)


def refusal(text: str) -> str:
    with pytest.raises(ValueError, match=r".") as refused:
        read(text)
    said = str(refused.value)
    assert PASSWORD not in said
    assert "PRIVATE KEY-" not in said
    return said


def inline(path: Path) -> str:
    """A PEM file as one property, its lines joined by continuations as in Kafka's own examples."""
    return " \\\n".join(path.read_text().splitlines())


class TestFile:
    """Java's format, as read by java.util.Properties."""

    def test_comments_separators_continuations_and_escapes(self) -> None:
        found = parse_properties(b"# no\n! no\na = 1\nb: 2 \nc 3\nd=x,\\\n   y\ne=caf\\u00e9\nf=caf\xe9\na=4\n")
        assert found == {"a": "4", "b": "2", "c": "3", "d": "x,y", "e": "café", "f": "café"}

    def test_a_broken_escape_is_named_by_its_line(self) -> None:
        """The escape is part of a value, so it is not quoted."""
        with pytest.raises(ValueError, match=r"^line 3: .u must be followed") as refused:
            parse_properties(rb"a=1" + b"\n\n" + rb"sasl.password=\u00zz")
        assert "00zz" not in repr(refused.value)
        assert refused.value.__cause__ is None

    def test_what_concerns_other_clients_is_ignored(self) -> None:
        """Timeouts and settings of other tools, settings that the protocol does not use, and empty values."""
        ignored = "client.id=x\ndefault.api.timeout.ms=60000\nssl.truststore.location=a.jks\nsasl.mechanism=GSSAPI\n"
        assert read(ignored) == ConnectionSettings(SERVERS)
        others = "sasl.kerberos.service.name=kafka\nsasl.login.refresh.buffer.seconds=3\nsasl.login.class=\n"
        assert read(SASL + LOGIN + others) == read(SASL + LOGIN)
        assert read(TLS + "ssl.keystore.type=JKS\nssl.protocol=TLSv1.3\n") == ConnectionSettings(SERVERS, tls=True)


class TestCredentials:
    @pytest.mark.parametrize("mechanism", [m for m in SaslMechanism if m is not SaslMechanism.OAUTHBEARER])
    @pytest.mark.parametrize("transport", ["PLAINTEXT", "ssl"])
    def test_of_the_login_module(self, mechanism: SaslMechanism, transport: str) -> None:
        """The protocol in upper or lower case, as in Kafka."""
        module = PLAIN if mechanism is SaslMechanism.PLAIN else SCRAM
        found = read(
            f"security.protocol=SASL_{transport}\nsasl.mechanism={mechanism}\n"
            f'sasl.jaas.config={module} required \\\n  username="operator" \\\n  password="{PASSWORD}";\n'
        )
        assert (found.username, found.password, found.sasl_mechanism) == ("operator", PASSWORD, mechanism)
        assert found.security_protocol == f"SASL_{transport.upper()}"

    @pytest.mark.parametrize(
        ("written", "meant"),
        [
            (r'"a\"b\\c"', r'a"b\c'),
            (r'"a\tb\101"', "a\tbA"),
            ('"a;b=c d"', "a;b=c d"),
            ("'a\"b'", 'a"b'),
            ("plain", "plain"),
        ],
    )
    def test_quotes_as_java_reads_them(self, written: str, meant: str) -> None:
        """Backslashes are unescaped twice: for the properties file, then for the login module's options."""
        jaas = f"{SCRAM} required password={written} username=operator;"
        found = connection_settings(
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}, SERVERS
        )
        assert found.password == meant
        assert read(SASL + f"sasl.jaas.config={jaas}".replace("\\", "\\\\")).password == meant

    def test_as_librdkafkas_tools_are_told_them(self) -> None:
        assert read(f"{SASL}sasl.username=operator\nsasl.password={PASSWORD}\n") == read(SASL + LOGIN)

    def test_the_password_is_not_shown(self) -> None:
        assert PASSWORD not in repr(read(SASL + LOGIN))

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (SASL, "sasl.jaas.config"),
            (f"{SASL}sasl.password={PASSWORD}\n", "sasl.username"),
            (f'{SASL}sasl.jaas.config={SCRAM} required username="operator" password="{PASSWORD}"\n', "semicolon"),
            (f'{SASL}sasl.jaas.config={SCRAM} required\nusername="operator" password="{PASSWORD}";\n', "continues"),
            (f"{SASL}{LOGIN.strip()} {LOGIN.partition('=')[2]}", "one login module"),
            (f'{SASL}sasl.jaas.config={SCRAM} required password="{PASSWORD}";\n', "no username"),
            (f'{SASL}sasl.jaas.config={SCRAM} required username="{PASSWORD}" password="";\n', "no password"),
            (f"{SASL}sasl.jaas.config={PASSWORD} required a=b;\n", "PlainLoginModule, ScramLoginModule"),
            (f"{SASL}{LOGIN.strip()[:-1]} tokenauth=true;\n", "tokenauth"),
        ],
    )
    def test_what_is_wrong_with_them_is_said_without_them(self, text: str, said: str) -> None:
        assert said in refusal(text)


class TestTokens:
    """OAUTHBEARER with client credentials, as Kafka's own tools have it."""

    def test_of_the_login_module(self) -> None:
        found = read(OAUTH + CLIENT.replace(";", ' scope="kafka";'))
        assert found.oauth == OAuthClient("https://login.example.org/token", "operator", PASSWORD, "kafka")
        assert (found.security_protocol, found.sasl_mechanism) == ("SASL_SSL", "OAUTHBEARER")

    def test_the_handler_of_older_clients(self) -> None:
        """Kafka moved it in 3.4; both names worked until 3.9."""
        assert read(OAUTH.replace("oauthbearer.OAuthBearerLoginC", "oauthbearer.secured.OAuthBearerLoginC") + CLIENT)

    def test_of_the_properties(self) -> None:
        """Since Kafka 4.1; they take precedence."""
        own = f"{BEARER} clientId=other clientSecret=other scope=other;\n"
        own += "sasl.oauthbearer.client.credentials.client.id=operator\nsasl.oauthbearer.scope=kafka\n"
        own += f"sasl.oauthbearer.client.credentials.client.secret={PASSWORD}\n"
        assert read(OAUTH + own) == read(OAUTH + CLIENT.replace(";", ' scope="kafka";'))
        assert read(OAUTH + own.replace("clientId=other clientSecret=other scope=other", "")) == read(OAUTH + own)

    def test_the_ca_of_the_oauth_server(self, pem: Path) -> None:
        """In the options of the login module; those outside are for the brokers."""
        store = f'ssl.truststore.type="PEM" ssl.truststore.location="{pem}/cert.pem"'
        found = read(OAUTH + CLIENT.replace(";", f" {store};"))
        assert found.oauth is not None
        assert (found.oauth.ca_pem, found.ca_pem) == (pem.joinpath("cert.pem").read_text(), None)

    def test_what_brokers_verify_is_ignored(self) -> None:
        for_brokers = "sasl.oauthbearer.expected.audience=kafka\nsasl.oauthbearer.clock.skew.seconds=3\n"
        assert read(OAUTH + CLIENT + for_brokers) == read(OAUTH + CLIENT)

    def test_other_mechanisms_ignore_it(self) -> None:
        assert read(SASL + LOGIN + ENDPOINT + "sasl.oauthbearer.assertion.file=a\n") == read(SASL + LOGIN)

    def test_the_secret_is_not_shown(self) -> None:
        assert PASSWORD not in repr(read(OAUTH + CLIENT))

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (OAUTH, "sasl.jaas.config is not of the form"),
            (OAUTH + LOGIN, "is not OAuthBearerLoginModule"),
            (f"{OAUTH}{BEARER} clientId=a;\n", "clientId and clientSecret in sasl.jaas.config, or"),
            (f"{OAUTH}{BEARER} clientSecret={PASSWORD};\n", "clientId and clientSecret in sasl.jaas.config, or"),
            (OAUTH + CLIENT.replace(";", " extension_logicalCluster=a;"), "extension_logicalCluster in sasl.jaas"),
            (f"{OAUTH}{BEARER} unsecuredLoginStringClaim_sub=admin;\n", "unsecuredLoginStringClaim_sub in sasl.jaas"),
            (OAUTH + CLIENT.replace(";", " ssl.protocol=TLSv1.1;"), "ssl.protocol in sasl.jaas.config"),
            (OAUTH + CLIENT.replace(";", " ssl.truststore.location=a.jks;"), "sasl.jaas.config: ssl.truststore.type"),
            (OAUTH + CLIENT.replace(";", " ssl.truststore.password=a;"), "ssl.truststore.password in sasl.jaas"),
            (OAUTH.replace(ENDPOINT, "") + CLIENT, "sasl.oauthbearer.token.endpoint.url must be"),
            (OAUTH.replace("https://", "file://") + CLIENT, "sasl.oauthbearer.token.endpoint.url must be"),
            (OAUTH.replace(HANDLER, "a=") + CLIENT, "sasl.login.callback.handler.class is not org.apache"),
            (OAUTH.replace(HANDLER, HANDLER + ".own") + CLIENT, "sasl.login.callback.handler.class is not org.apache"),
            (f"{OAUTH}{CLIENT}sasl.oauthbearer.assertion.file=a\n", "sasl.oauthbearer.assertion.file is not"),
            (f"{OAUTH}{CLIENT}sasl.oauthbearer.jwt.retriever.class=a\n", "sasl.oauthbearer.jwt.retriever.class is"),
            (f"{OAUTH}{CLIENT}sasl.login.class=a.b.C\n", "sasl.login.class"),
        ],
    )
    def test_refusals(self, text: str, said: str) -> None:
        assert said in refusal(text)


class TestCertificates:
    """PEM, in files or inline in the properties."""

    def test_in_files(self, pem: Path) -> None:
        found = read(
            f"{TLS}ssl.truststore.type=PEM\nssl.truststore.location={pem}/cert.pem\n"
            f"ssl.keystore.type=pem\nssl.keystore.location={pem}/client.pem\n"
        )
        certificate, key = pem.joinpath("cert.pem").read_text(), pem.joinpath("key.pem").read_text()
        assert (found.ca_pem, found.client_cert_pem, found.client_key_pem) == (certificate, certificate, key)
        assert isinstance(kafka_python_config(found)["ssl_context"], ssl.SSLContext)

    def test_in_properties(self, pem: Path) -> None:
        """Inline, their lines are joined by blanks, which OpenSSL does not read."""
        found = read(
            f"{TLS}ssl.truststore.type=PEM\nssl.truststore.certificates={inline(pem / 'cert.pem')}\n"
            f"ssl.keystore.type=PEM\nssl.keystore.certificate.chain={inline(pem / 'cert.pem')}\n"
            f"ssl.keystore.key={inline(pem / 'key.pem')}\n"
        )
        certificate, key = pem.joinpath("cert.pem").read_text(), pem.joinpath("key.pem").read_text()
        assert (found.ca_pem, found.client_cert_pem, found.client_key_pem) == (certificate, certificate, key)

    def test_a_whole_chain_is_taken(self, pem: Path) -> None:
        twice = pem / "twice.pem"
        twice.write_text(pem.joinpath("cert.pem").read_text() * 2)
        found = read(f"{TLS}ssl.truststore.type=PEM\nssl.truststore.location={twice}\n")
        assert found.ca_pem == twice.read_text()

    @pytest.mark.parametrize("store", ["truststore", "keystore"])
    @pytest.mark.parametrize(("kind", "said"), [("", "JKS"), ("JKS", "JKS"), ("PKCS12", "PKCS12"), ("BCFKS", "PEM")])
    def test_other_stores_are_refused_with_the_way_to_pem(self, store: str, kind: str, said: str) -> None:
        """Kafka's default is JKS."""
        named = f"ssl.{store}.type={kind}\n" if kind else ""
        told = refusal(f"{TLS}{named}ssl.{store}.location=my.store\nssl.{store}.password={PASSWORD}\n")
        assert f"ssl.{store}.type" in told
        assert said in told
        assert ("keytool -list -rfc" if store == "truststore" else "openssl pkcs12 -in") in told

    @pytest.mark.parametrize(
        ("properties", "said"),
        [
            ("ssl.truststore.location={0}/not-there.pem", "ssl.truststore.location: No such file or directory"),
            ("ssl.truststore.location={0}", "ssl.truststore.location: Is a directory"),
            ("ssl.truststore.location={0}/key.pem", "ssl.truststore.location contains no certificate"),
            ("ssl.truststore.certificates=abc", "ssl.truststore.certificates contains no certificate"),
            ("ssl.truststore.certificates=abc\nssl.truststore.location=a", "exclude each other"),
            ("ssl.keystore.location={0}/cert.pem", "ssl.keystore.location must contain one private key"),
            ("ssl.keystore.location={0}/key.pem", "ssl.keystore.location contains no certificate"),
            ("ssl.keystore.location={0}/locked.pem", "openssl pkey"),
            ("ssl.keystore.key=abc", "ssl.keystore.certificate.chain and ssl.keystore.key must be set together"),
            ("ssl.keystore.certificate.chain=abc", "must be set together"),
            ("ssl.keystore.location={0}/client.pem\nssl.key.password=" + PASSWORD, "ssl.key.password"),
        ],
    )
    def test_what_is_wrong_with_them_is_said(self, pem: Path, properties: str, said: str) -> None:
        types = "ssl.truststore.type=PEM\nssl.keystore.type=PEM\n"
        assert said in refusal(TLS + types + properties.format(pem))


class TestRefusals:
    """A connection that is less strict than requested is worse than none: unsupported settings are named."""

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            (f"security.protocol={PASSWORD}\n", "security.protocol"),
            ("security.providers=a.b.C\n", "security.providers"),
            ("config.providers=env\n", "config.providers"),
            (f"{TLS}ssl.endpoint.identification.algorithm=\n", "ssl.endpoint.identification.algorithm"),
            (f"{TLS}ssl.enabled.protocols=TLSv1.3\n", "ssl.enabled.protocols"),
            (f"{TLS}ssl.cipher.suites=TLS_AES_256_GCM_SHA384\n", "ssl.cipher.suites"),
            (f"{TLS}ssl.engine.factory.class=a.b.C\n", "ssl.engine.factory.class"),
            ("security.protocol=SASL_SSL\n", "sasl.mechanism is not set, which means GSSAPI"),
            ("security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\n", "sasl.mechanism is GSSAPI"),
            (f"security.protocol=SASL_SSL\nsasl.mechanism={PASSWORD}\n", "sasl.mechanism is unknown"),
            (f"{SASL}{LOGIN}sasl.client.callback.handler.class=a.b.C\n", "sasl.client.callback.handler.class"),
            (f"{SASL}{LOGIN}sasl.login.class=a.b.C\n", "sasl.login.class"),
        ],
    )
    def test_by_name(self, text: str, name: str) -> None:
        assert name in refusal(text)

    def test_what_says_the_same_as_we_do_is_taken(self) -> None:
        strict = "ssl.endpoint.identification.algorithm=HTTPS\nssl.enabled.protocols=TLSv1.2, TLSv1.3\n"
        assert read(TLS + strict) == ConnectionSettings(SERVERS, tls=True)


class TestOptions:
    """How a command combines its two options."""

    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        path = tmp_path / "client.properties"
        path.write_text(f"bootstrap.servers=from-file:9092\n{SASL}{LOGIN}")
        return path

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[ConnectionSettings]:
        """The settings that snapshot would connect with."""
        asked = []

        async def note(settings: ConnectionSettings) -> tuple[dict[str, object], int]:
            asked.append(settings)
            return {}, 0

        monkeypatch.setattr(command, "_read", note)
        return asked

    @pytest.mark.parametrize(
        ("options", "servers"), [([], "from-file:9092"), (["--bootstrap-servers", SERVERS], SERVERS)]
    )
    def test_the_option_wins_over_the_file(
        self, file: Path, asked: list[ConnectionSettings], options: list[str], servers: str
    ) -> None:
        done = CliRunner().invoke(command.snapshot, ["--command-config", str(file), *options])
        assert done.exit_code == 0
        assert [(a.bootstrap_servers, a.username, a.password) for a in asked] == [(servers, "operator", PASSWORD)]

    def test_without_a_file_it_is_plaintext(self, asked: list[ConnectionSettings]) -> None:
        assert CliRunner().invoke(command.snapshot, ["--bootstrap-servers", SERVERS]).exit_code == 0
        assert asked == [ConnectionSettings(SERVERS)]

    @pytest.mark.parametrize("options", [[], ["--command-config", "/dev/null"]])
    def test_without_servers_it_is_wrong_usage(self, asked: list[ConnectionSettings], options: list[str]) -> None:
        done = CliRunner().invoke(command.snapshot, options)
        assert (done.exit_code, asked) == (2, [])
        assert "--bootstrap-servers" in done.stderr
        assert "bootstrap.servers" in done.stderr

    def test_a_refusal_is_wrong_usage_and_shows_no_secret(
        self, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """One line that names the option; not even a traceback would show the secret."""
        file.write_text(f"{SASL}{LOGIN.strip()[:-1]}\nsasl.password={PASSWORD}\n")
        monkeypatch.setattr(sys, "argv", ["kafka-rebalance", "snapshot", "--command-config", str(file)])
        monkeypatch.setenv("COLUMNS", "500")
        with pytest.raises(SystemExit) as stopped:
            main()
        said = capsys.readouterr()
        assert (stopped.value.code, said.out) == (2, "")
        assert "bootstrap.servers" in said.err
        monkeypatch.setattr(sys, "argv", [*sys.argv, "--bootstrap-servers", SERVERS])
        with pytest.raises(SystemExit) as stopped:
            main()
        said = capsys.readouterr()
        assert (stopped.value.code, said.out) == (2, "")
        assert "Invalid value for --command-config: sasl.jaas.config" in said.err
        assert PASSWORD not in said.err
