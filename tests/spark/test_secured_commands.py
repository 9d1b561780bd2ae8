"""What the commands that start Spark give to it: the sources of secrets, from places that are the same everywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.errors import ConfigError
from quorumlog.client.options import ConsumerOptions, ProducerOptions
from quorumlog.spark.session import java
from quorumlog.spark.write.options import parse_write_options
from quorumlog_cli.commands.spark_jobs.spark_mirror import mirror
from quorumlog_cli.connecting.connect import find_target
from quorumlog_cli.main import main
from quorumlog_cli.spark_options import spark_options
from quorumlog_cli.terminal.errors import CliError, Exit

CANARY = "c4nary-s3cret"
LOGIN = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", "sasl.username=ada"]


def given(*options: str, kind: Any = ConsumerOptions) -> dict[str, str]:
    return spark_options(find_target("h:1", None, list(options)), kind)


def test_a_secret_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "password").write_text(CANARY)
    (tmp_path / "admin.properties").write_text("\n".join([*LOGIN, "sasl.password=file:password"]))
    made = given("admin.properties", "linger.ms=3", kind=ProducerOptions)
    assert made == {
        "kafka.bootstrap.servers": "h:1",
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "ada",
        "kafka.sasl.password": f"file:{tmp_path}/password",
        "kafka.linger.ms": "3",
    }
    monkeypatch.chdir("/")
    assert parse_write_options({**made, "topic": "t"}).client["sasl_password"] == CANARY


@pytest.mark.parametrize(
    "option",
    [
        f"sasl.password={CANARY}",
        f'sasl.jaas.config=x.PlainLoginModule required username="a" password="{CANARY}";',
        f"ssl.keystore.key={CANARY}",
    ],
    ids=["a password", "in a line", "a key"],
)
def test_a_secret_in_clear_is_not_given_to_spark(option: str) -> None:
    with pytest.raises(CliError) as refusal:
        given(*LOGIN, option)
    name = option.partition("=")[0].replace(".", "_")
    assert refusal.value.code is Exit.USAGE and f"give {name}=env:NAME" in str(refusal.value)
    assert CANARY not in str(refusal.value)


def test_half_of_it_is_told_before_spark_starts() -> None:
    with pytest.raises(ConfigError, match="needs sasl_mechanism"):
        given("security.protocol=SASL_SSL")


def test_the_shell_is_given_them(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "use_java", lambda: None)
    monkeypatch.setenv("JAVA_HOME", "/java")
    monkeypatch.setenv("CANARY", CANARY)
    words = [word for option in (*LOGIN, "sasl.password=env:CANARY") for word in ("-X", option)]
    assert main(["spark", "shell", "-b", "h:1", "-o", "json", *words]) == 0
    told = capsys.readouterr().out
    options = json.loads(json.loads(told)["environment"]["QUORUMLOG_SPARK_OPTIONS"])
    assert options["kafka.sasl.password"] == "env:CANARY" and CANARY not in told


def test_a_mirror_is_refused_a_secret_in_clear(tmp_path: Path) -> None:
    """Before either cluster is asked, and before Spark starts."""
    with pytest.raises(CliError, match="give sasl_password=env:NAME"):
        mirror(
            source="one=h:1",
            to="other=h:2",
            topics="orders",
            checkpoint=str(tmp_path),
            options=[*LOGIN, f"sasl.password={CANARY}"],
        )
