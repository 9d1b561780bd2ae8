"""What `check` answers, and what `diagnose` lets into its file. The causes are in tests/library/test_causes.py."""

from __future__ import annotations

import io
import json
import tarfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.client.errors import AuthenticationFailed
from quorumlog.events.kinds import KINDS
from quorumlog.explaining.causes import CAUSES
from quorumlog.explaining.facts import BrokerFact, DirectoryFact, Facts, PartitionFact
from quorumlog.explaining.finding import Evidence, Finding, Severity
from quorumlog.explaining.judging import judge
from quorumlog.explaining.thresholds import Thresholds
from quorumlog.messages.events import Event
from quorumlog_cli.commands.explaining import check, explain, reading
from quorumlog_cli.commands.explaining.check import Area, code_of, document_of, nagios_of, prometheus_of
from quorumlog_cli.diagnosing.bundle import Bundle
from quorumlog_cli.diagnosing.cluster_parts import _settings
from quorumlog_cli.diagnosing.redact import BLOT, redacted
from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import Exit

CANARY = "Xy7-canary"
OFFLINE = DirectoryFact(node_id=3, path="/data|3", error="EIO")
FULL = DirectoryFact(node_id=2, path="/data2", total=1_000, usable=100, reserve=50)
ASKED = ("3 brokers, 6 partitions",)
CODES = [
    ("nothing is wrong", Facts(at_ms=1, asked=ASKED), 0),
    ("a warning", Facts(at_ms=1, asked=ASKED, directories=(FULL,)), 1),
    ("a critical finding", Facts(at_ms=1, asked=ASKED, directories=(OFFLINE,)), 2),
    ("both", Facts(at_ms=1, asked=ASKED, directories=(OFFLINE, FULL)), 2),
    ("a critical one, and a part that is unknown", Facts(at_ms=1, directories=(OFFLINE,), unknown={"groups": "?"}), 2),
    ("a part that is unknown", Facts(at_ms=1, unknown={"groups": "TimeoutError"}), 3),
    ("an Apache Kafka", Facts(at_ms=1, asked=ASKED, unknown={"events": "it keeps none"}, has_events=False), 0),
    ("a notice", Facts(at_ms=1, asked=ASKED, brokers=(BrokerFact(node_id=1, cordoned=True),)), 0),
    ("nobody answers", Facts(at_ms=1, unreachable="connection refused"), 2),
]


def findings_of(facts: Facts) -> list[Finding]:
    return judge(facts, Thresholds())


@pytest.mark.parametrize(("facts", "want"), [one[1:] for one in CODES], ids=[one[0] for one in CODES])
def test_the_exit_code_is_that_of_the_worst_finding(
    facts: Facts, want: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "read", lambda *_args, **_how: facts)
    assert code_of(facts, findings_of(facts)) == want
    for shape in ("nagios", "json", "prometheus"):
        assert main(["check", "--format", shape]) == want
        out = capsys.readouterr().out
        assert (json.loads(out)["code"] == want) if shape == "json" else out


def test_nagios_reads_one_line_and_its_figures() -> None:
    partition = PartitionFact(topic="t", index=0, leader=1, replicas=(1,), isr=(1,))
    facts = Facts(at_ms=1, asked=ASKED, directories=(OFFLINE, FULL), partitions=(partition,))
    first, *more = nagios_of(Area.DISK, 2, facts, findings_of(facts)).splitlines()
    text, figures = first.split(" | ")
    assert text.startswith("QUORUMLOG DISK CRITICAL - ") and "|" not in text
    assert dict(one.split("=") for one in figures.split())["least_free_percent"] == "10"
    assert all("|" not in line for line in more) and any("directory.offline: directory//data/3" in one for one in more)


def test_a_healthy_check_says_what_it_looked_at() -> None:
    facts = Facts(at_ms=1, asked=ASKED)
    assert "looked at 3 brokers, 6 partitions" in nagios_of(Area.ALL, 0, facts, [])
    assert document_of(Area.ALL, 0, facts, [])["looked_at"] == list(ASKED)
    assert "quorumlog_check_status" in prometheus_of(Area.ALL, 0, [])


def test_names_of_clients_are_no_labels() -> None:
    facts = Facts(at_ms=1, directories=(DirectoryFact(node_id=1, path='/d"\n', error="x"),))
    assert '/d"' not in prometheus_of(Area.ALL, 2, findings_of(facts))


def test_explain_tells_what_cannot_be_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = Facts(
        at_ms=1,
        brokers=(BrokerFact(node_id=3, fenced=True, leaving=None),),
        has_events=False,
        unknown={"events": "this cluster keeps none"},
    )
    monkeypatch.setattr(explain, "read", lambda *_args, **_how: facts)
    assert main(["explain", "broker/3"]) == 5
    captured = capsys.readouterr()
    assert "this cluster does not tell why" in captured.out and "this cluster keeps none" in captured.err
    assert main(["explain", "broker/9"]) == 7


def test_a_subject_may_be_two_words_and_none_means_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = Facts(at_ms=1, asked=ASKED, brokers=(BrokerFact(node_id=3, fenced=True),), directories=(OFFLINE,))
    monkeypatch.setattr(explain, "read", lambda *_args, **_how: facts)
    assert main(["explain", "broker", "3"]) == 5
    assert "broker 3 is FENCED" in capsys.readouterr().out
    assert main(["explain"]) == 5
    said = capsys.readouterr().out
    assert "broker 3 is FENCED" in said and "/data|3" in said
    assert main(["explain", "thing", "3"]) == Exit.USAGE
    assert "'thing' is no sort of subject" in capsys.readouterr().err
    monkeypatch.setattr(explain, "read", lambda *_args, **_how: Facts(at_ms=1, asked=ASKED))
    assert main(["explain"]) == 0
    assert capsys.readouterr().out == "nothing is wrong; looked at 3 brokers, 6 partitions\n"


def test_an_event_is_shown_with_its_time_and_record() -> None:
    event = Event(at_ms=0, node_id=1, number=1, kind="k", subject="s", text="t", offset=7, record="R")
    assert explain.line_of(Evidence.of_event(event)).endswith("s: t   [metadata @7 R]")
    assert explain.line_of(Evidence(text="t", source="Metadata", at_ms=0)).startswith("now ")


def test_a_name_makes_no_line_of_nagios() -> None:
    state, do = "group a\nOK - all is well\x1b[2J", "see a\nb"
    why = (Evidence(text="t", source="s", at_ms=0),)
    finding = Finding(
        cause="stuck", subject="group/a\nb", severity=Severity.CRITICAL, state=state, why=why, next="", do=do
    )
    said = nagios_of(Area.ALL, 2, Facts(at_ms=1, asked=ASKED), [finding])
    assert len(said.splitlines()) == 2 and all(line.isprintable() for line in said.splitlines())


# --- what is let into the file of `diagnose`

LONG = ["a", "a.", "eyJ-", "password", "password= ", 'password="', 'password=\\"', "a://b:", "-----BEGIN ", "basic "]

SECRETS = [
    f"ssl.keystore.password={CANARY}",
    f'"password": "{CANARY}"',
    f'sasl.jaas.config=org.x.ScramLoginModule required username=u password="{CANARY}";',
    f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----",
    f"-----BEGIN RSA PRIVATE KEY-----\n{CANARY}",
    f"authorization: Bearer {CANARY}abcdef",
    f"Basic {CANARY}abcdef==",
    f"eyJhbGciOiJI.{CANARY.replace('-', '')}xx.sig",
    f"http://user:{CANARY}@host:80/",
    f"token: {CANARY}, client_secret = '{CANARY} {CANARY}'",
    json.dumps({"event": f'sasl.password="a {CANARY}" is wrong'}),
    json.dumps({"event": json.dumps({"sasl.jaas.config": f'x required username="u" password="a {CANARY}";'})}),
    f'password="a\\"b {CANARY}"',
    f"https://user:a/{CANARY}@host/",
]


@pytest.mark.parametrize("text", SECRETS)
def test_free_text_passes_without_its_secrets(text: str) -> None:
    found = redacted(f"before {text}\nafter")
    assert CANARY not in found and CANARY.replace("-", "") not in found and BLOT in found
    assert found.startswith("before")


@pytest.mark.parametrize("part", LONG)
def test_a_long_text_of_a_client_takes_no_time(part: str) -> None:
    began_s = time.process_time()
    redacted(part * (100_000 // len(part)))
    assert time.process_time() - began_s < 2


@given(st.text(alphabet="abz :=/.-\n\"'{}5", max_size=200))
def test_text_without_secrets_stays(text: str) -> None:
    assert redacted(text) == text and redacted(redacted(text)) == redacted(text)


def test_the_bundle_is_for_its_owner_and_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "b.tar.zst"

    def fails() -> str:
        raise OSError(f"password={CANARY} at a page")

    with Bundle(path, {"version": "1"}) as bundle:
        bundle.add_json("a.json", lambda: {"says": [f"password={CANARY}", {"n": 2**63}]})
        bundle.add_text("b.txt", fails)
    assert path.stat().st_mode & 0o777 == 0o600
    data = zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read()
    assert CANARY.encode() not in data
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        manifest = json.load(tar.extractfile("quorumlog-diagnose/manifest.json"))  # type: ignore[arg-type]
        assert json.load(tar.extractfile("quorumlog-diagnose/a.json"))["says"][1]["n"] == 2**63  # type: ignore[arg-type]
    assert [one["name"] for one in manifest["parts"]] == ["a.json"]
    assert manifest["missing"] == {"b.txt": f"OSError: password={BLOT} at a page"}
    with pytest.raises(FileExistsError):
        Bundle(path, {})


def test_settings_are_shown_by_an_allow_list() -> None:
    def config(name: str, sensitive: bool = False) -> Any:
        return SimpleNamespace(name=name, value=CANARY, source=4, is_sensitive=sensitive)

    described: Any = SimpleNamespace(
        configs=[config("node.id"), config("node.id", True), config("ssl.key.password"), config("my.own")]
    )
    found = _settings(described, changed_only=False)
    assert [one["value"] for one in found] == [CANARY, None, None, None]
    assert {one["origin"] for one in found} == {"file"}


def test_what_cannot_be_reached_is_a_fact(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    found = reading.read("127.0.0.1:1", None, None, parts=())
    assert "127.0.0.1:1" in found.unreachable and findings_of(found)[0].severity is Severity.CRITICAL


def test_the_page_lists_every_cause_and_kind_of_event() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "explaining.md").read_text()
    for cause in CAUSES:
        assert f"| `{cause.name}` | {cause.area} | {cause.says} |" in page
    for kind, says in KINDS.items():
        assert f"| `{kind}` | {says} |" in page


def test_an_expired_certificate_is_the_clusters_and_a_wrong_password_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ""

    def refused(*_args: Any, **_how: Any) -> Any:
        raise AuthenticationFailed(said)

    monkeypatch.setattr(reading, "connected", refused)
    said = "the broker's certificate: it has expired: renew it"
    assert main(["check", "-b", "127.0.0.1:1"]) == 2
    assert "certificate.expired: cluster" in capsys.readouterr().out
    said = "the password is wrong"
    assert main(["check", "-b", "127.0.0.1:1"]) == 3
    assert "UNKNOWN - the password is wrong" in capsys.readouterr().err
    assert main(["explain", "quorum", "-b", "127.0.0.1:1"]) == 8
