"""One login module with its options, as Java reads it."""

import pytest

from kafka_rebalance.kafka.jaas import parse_login


def test_a_login_of_strimzi() -> None:
    login = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="my-user" password="p";'
    assert parse_login(login) == ("ScramLoginModule", {"username": "my-user", "password": "p"})


def test_quotes_and_escapes() -> None:
    written = r"""a.b.M  optional one='it "is"' two="say \"so\"\\" three=bare four="\101" ;  """
    assert parse_login(written) == ("M", {"one": 'it "is"', "two": 'say "so"\\', "three": "bare", "four": "A"})


@pytest.mark.parametrize(
    "jaas", ["", "M", "M required", 'M required password="hunter2"', "M required a=1; M required;"]
)
def test_anything_else_is_refused_without_being_quoted(jaas: str) -> None:
    with pytest.raises(ValueError, match=r"^sasl\.jaas\.config is not of the form") as refused:
        parse_login(jaas)
    assert "hunter2" not in str(refused.value)
