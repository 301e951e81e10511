"""Two truststores with the same certificates become the same file, which Java reads."""

import subprocess
from pathlib import Path

import pytest

from kafka_rebalance.pipeline.java_truststore import fix_dates

_STORE = ("-storetype", "JKS", "-storepass", "changeit")


def keytool(*arguments: object) -> str:
    return subprocess.run(["keytool", *map(str, arguments)], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    place, files = tmp_path_factory.mktemp("certificates"), []
    for name in ("b", "a"):
        key = place / f"{name}.key"
        keytool("-genkeypair", "-alias", name, "-keyalg", "EC", "-dname", f"CN={name}", "-keystore", key, *_STORE)
        files.append(place / f"{name}.pem")
        keytool("-exportcert", "-alias", name, "-file", files[-1], "-keystore", key, *_STORE)
    return files


def store_of(certificates: list[Path], target: Path) -> bytes:
    for file in certificates:
        options = ("-alias", file.stem, "-file", file, "-keystore", target)
        keytool("-importcert", "-noprompt", *options, *_STORE)
    return target.read_bytes()


def test_the_time_and_the_order_do_not_matter(certificates: list[Path], tmp_path: Path) -> None:
    one = store_of(certificates, tmp_path / "one")
    other = store_of(certificates[::-1], tmp_path / "other")
    assert one != other
    assert fix_dates(one) == fix_dates(other)


def test_java_reads_it(certificates: list[Path], tmp_path: Path) -> None:
    """With both certificates, and with its check of the hash."""
    fixed = tmp_path / "fixed"
    fixed.write_bytes(fix_dates(store_of(certificates, tmp_path / "store")))
    listed = keytool("-list", "-keystore", fixed, *_STORE)
    assert [line.partition(",")[0] for line in listed.splitlines() if "trustedCertEntry" in line] == ["a", "b"]
    assert "Jan 1, 2020" in listed


@pytest.mark.parametrize("broken", [b"\0" * 40, b"short"])
def test_other_files_are_refused(broken: bytes) -> None:
    with pytest.raises(ValueError, match="not a JKS truststore"):
        fix_dates(broken)
