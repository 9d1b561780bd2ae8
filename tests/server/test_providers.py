"""Values of a node's file that stand elsewhere: as Kafka's providers read them, and below allowed paths alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorumlog_server.config.config import load, read_config
from quorumlog_server.config.properties import ConfigError

KAFKA = "org.apache.kafka.common.config.provider."
CANARY = "canary-5520"
BASE = "node.id=1\ncontroller.quorum.voters=1@127.0.0.1:9093\nlisteners=CLIENT://127.0.0.1:9092,INTERNAL://127.0.0.1:9093\n"
ENV = f"config.providers=env\nconfig.providers.env.class={KAFKA}EnvVarConfigProvider\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "node.properties").write_text(f"rack=r1\nhidden={CANARY}\n")
    (tmp_path / "in" / "rack").write_text("r2\n")
    (tmp_path / "out").write_text(f"rack={CANARY}\n")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    return tmp_path


def files(place: Path) -> str:
    return "config.providers=file,dir\n" + "".join(
        f"config.providers.{name}.class={KAFKA}{kind}ConfigProvider\n"
        f"config.providers.{name}.param.allowed.paths={place / 'in'}\n"
        for name, kind in (("file", "File"), ("dir", "Directory"))
    )


def rack(text: str, environment: dict[str, str] | None = None) -> object:
    return load("node.properties", BASE + text, environment or {}).values["broker.rack"]


def test_values_come_from_their_places(place: Path) -> None:
    assert rack(ENV + "broker.rack=${env:RACK}\n", {"RACK": "r0"}) == "r0"
    assert rack(ENV + "broker.rack=a-${env:A}-${env:B}\n", {"A": "1", "B": "${env:A}"}) == "a-1-${env:A}", "once"
    assert rack(files(place) + f"broker.rack=${{file:{place}/in/node.properties:rack}}\n") == "r1"
    assert rack(files(place) + f"broker.rack=${{dir:{place}/in:rack}}\n") == "r2"
    assert rack("broker.rack=${env:RACK}\n", {"RACK": "r0"}) == "${env:RACK}", "without a provider, as in Kafka"


def test_only_the_file_is_read_so(place: Path) -> None:
    """Neither the environment nor the command line: there the text stays (CVE-2024-31141 of the same kind)."""
    text = "${env:RACK}"
    assert rack(ENV, {"QUORUMLOG_BROKER_RACK": text, "RACK": CANARY}) == text
    (place / "node.properties").write_text(BASE + ENV)
    assert (
        read_config(str(place / "node.properties"), [f"broker.rack={text}"], {"RACK": "x"}).values["broker.rack"]
        == text
    )


REFUSED = [
    ("another class", "config.providers=x\nconfig.providers.x.class=com.example.Vault\n", "no other class is loaded"),
    ("no class", "config.providers=x\n", "config.providers.x.class must be one of"),
    ("a provider that is not named", f"config.providers.env.class={KAFKA}EnvVarConfigProvider\n", "does not name this"),
    ("an unknown name", ENV + "broker.rack=${vault:a:b}\n", "does not name 'vault'; it has env"),
    ("no variable", ENV + "broker.rack=${env:RACK}\n", "broker.rack: ${env:RACK}: there is no such variable"),
    ("a path of a variable", ENV + "broker.rack=${env:/a:RACK}\n", "a variable has no path"),
    ("a bad pattern", ENV + "config.providers.env.param.allowlist.pattern=(\n", "is no regular expression"),
    (
        "a variable that is not allowed",
        ENV + "config.providers.env.param.allowlist.pattern=NODE_.*\nbroker.rack=${env:HOME}\n",
        "param.allowlist.pattern does not allow it",
    ),
    (
        "no paths",
        f"config.providers=file\nconfig.providers.file.class={KAFKA}FileConfigProvider\n",
        "allowed.paths must",
    ),
]
OF_FILES = [
    ("outside", "${file:PLACE/out:rack}", "the file is not below PLACE/in"),
    ("upwards", "${file:PLACE/in/../out:rack}", "the file is not below PLACE/in"),
    ("by a link", "${file:PLACE/in/link:rack}", "the file is not below PLACE/in"),
    ("of the same beginning", "${dir:PLACE/in-no:rack}", "the file is not below PLACE/in"),
    ("no file", "${file:PLACE/in/none:rack}", "the file cannot be read: No such file"),
    ("no key", "${file:PLACE/in/node.properties:none}", "the file has no such key"),
    ("no name", "${dir:PLACE/in:../out}", "with the name of a file in PATH"),
    ("no path", "${dir:rack}", "with the name of a file in PATH"),
]


@pytest.mark.parametrize(("text", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as found:
        rack(text, {"HOME": CANARY})
    assert message in str(found.value) and str(found.value).startswith("node.properties: ") and CANARY not in str(found)


@pytest.mark.parametrize(("value", "message"), [case[1:] for case in OF_FILES], ids=[case[0] for case in OF_FILES])
def test_files_are_read_below_the_allowed_paths_alone(place: Path, value: str, message: str) -> None:
    with pytest.raises(ConfigError) as found:
        rack(files(place) + f"broker.rack={value.replace('PLACE', str(place))}\n")
    assert message.replace("PLACE", str(place)) in str(found.value) and CANARY not in str(found.value)


def test_a_client_s_value_stays_text() -> None:
    """A setting that a client sends is validated and stored; nothing of it is looked up."""
    from quorumlog.configs.broker import BROKER_CONFIGS
    from quorumlog.errors import ApiError
    from quorumlog.settings.config_key import parse_text

    with pytest.raises(ApiError, match=r"\$\{env:HOME\}"):
        parse_text(BROKER_CONFIGS["log.cleaner.threads"], "${env:HOME}")
