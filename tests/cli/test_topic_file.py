"""`quorumlog topic create -f`: what a file says, where it is wrong, and that all are checked before one is made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.client.admin import NewTopic
from quorumlog.errors import ErrorCode
from quorumlog.messages.cluster import CreateTopicResult
from quorumlog_cli.commands.topics import topic as command
from quorumlog_cli.commands.topics.topic_create_file import differs
from quorumlog_cli.commands.topics.topic_file import WantedTopic, wanted_topics
from quorumlog_cli.main import main
from quorumlog_cli.profiles.profile import Target
from quorumlog_cli.terminal.errors import CliError, Exit

ORDERS = WantedTopic(
    name="orders", partitions=6, replication=3, configs={"retention.ms": "86400000", "cleanup.policy": "compact,delete"}
)
PRICES = WantedTopic(name="prices", assignment=((1, 2), (2, 1)))
JSON = """{"topics": [
  {"topic": "orders", "partitions": 6, "replication_factor": 3,
   "configs": {"retention.ms": 86400000, "cleanup.policy": ["compact", "delete"]}},
  {"topic": "prices", "assignment": [[1, 2], [2, 1]]}
]}"""
TOML = """# what the shop needs
[[topics]]
topic = "orders"
partitions = 6
replication_factor = 3
configs.retention.ms = 86400000
configs."cleanup.policy" = "compact,delete"

[[topics]]
topic = "prices"
assignment = [[1, 2], [2, 1]]
"""


@pytest.mark.parametrize("text", [JSON, json.dumps(json.loads(JSON)["topics"]), TOML], ids=["json", "list", "toml"])
@pytest.mark.parametrize("file", ["topics", "standard input"])
def test_each_form_says_the_same(text: str, file: str) -> None:
    assert wanted_topics(text, file) == [ORDERS, PRICES]


def test_the_ending_of_the_name_says_the_form() -> None:
    assert wanted_topics(TOML, "t.toml") == wanted_topics(JSON, "t.json")
    with pytest.raises(CliError, match=r"t\.toml, line 1: not TOML"):
        wanted_topics(JSON, "t.toml")


def test_a_description_can_be_fed_back() -> None:
    shown = {
        "topic": "orders",
        "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "partitions": [{"partition": 0, "leader": 1, "replicas": [1, 2], "isr": [1]}, {"partition": 1, "leader": None}],
        "replication_factor": 2,
        "state": "under-replicated",
        "configs": {"retention.ms": "1"},
    }
    wanted = WantedTopic(name="orders", partitions=2, replication=2, configs={"retention.ms": "1"})
    assert wanted_topics(json.dumps(shown, indent=2), "orders.json") == [wanted]
    assert wanted_topics(json.dumps([shown]), "-") == [wanted]


BAD = [
    ('{"topics": [\n{"topic": "a"},\n{"topic": "b", "partitions": 0}]}', 3, "partitions: 0 is no number"),
    ('{"topics": [\n{"topic": "a",\n "partitions": true}]}', 3, "partitions: True is no number"),
    ('[{"topic": "a"},\n{"topic": "a"}]', 2, "topic: 'a' stands in the file twice"),
    ('[{"topic": "a"},\n\n{"partitions": 1}]', 3, "topic: is missing"),
    ('[{"topic": "a",\n"partitons": 1}]', 2, "partitons: is none of topic, partitions"),
    ('[{"topic": "a",\n"configs": {\n"retention.ms": null}}]', 3, "retention.ms: None is neither"),
    ('{"topic": "a",\n"configs": null}', 2, "configs: this description could not see them"),
    ('[{"topic": "a", "partitions": 1,\n"assignment": [[1]]}]', 1, "partitions: assignment says it already"),
    ('[{"topic": "a",\n"assignment": [[1], [2, 2]]}]', 2, "assignment: partition 1 names a broker twice"),
    ('[{"topic": "a",\n"assignment": [[1], [true]]}]', 2, "assignment: partition 1 has [True]"),
    ('[{"topic": "a"},\n3]', 2, "topic: 3 is no topic"),
    ('{"topics": [],\n "more": 1}', 1, "'more' beside topics"),
    ('{"topics":\n 3}', 1, "no document of the form"),
    ('[{"topic": "a"},\n{"topic" "b"}]', 2, "not JSON"),
    ('[[topics]]\ntopic = "a"\n\n[[topics]]\ntopic = "b"\npartitions = -3\n', 6, "partitions: -3 is no number"),
    ('[[topics]]\ntopic = "a"\ntopic = "b"\n', 3, "not TOML"),
    ('[[topics]]\ntopic = "a"\n[topics.configs]\nretention.ms = 1.5e400\n"min.insync" = {a = []}', 5, "sync.a: []"),
    ('topic = "a"\n', 1, "'topic' beside topics"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "why"), BAD, ids=[why for _, _, why in BAD])
def test_a_mistake_names_line_and_field(text: str, line: int, why: str) -> None:
    with pytest.raises(CliError) as raised:
        wanted_topics(text, "t")
    assert raised.value.code is Exit.DATA_INVALID
    assert raised.value.message.startswith(f"t, line {line}: ") and why in raised.value.message


@pytest.mark.parametrize("text", ["[]", '{"topics": []}'])
def test_a_file_without_topics_is_refused(text: str) -> None:
    with pytest.raises(CliError, match="t names no topic"):
        wanted_topics(text, "t")


def test_numbers_keep_their_digits() -> None:
    (topic,) = wanted_topics('[{"topic":"a","configs":{"x":9223372036854775807,"y":0.10000000000000000001}}]', "t")
    assert topic.configs == {"x": "9223372036854775807", "y": "0.10000000000000000001"}


@given(st.text(max_size=60) | st.text(alphabet='[]{}":,\\ \ntopicsa10.=', max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    for file in ("t", "t.json", "t.toml"):
        try:
            wanted_topics(text, file)
        except CliError as error:
            assert error.code is Exit.DATA_INVALID


class Admin:
    """Refuses `bad`; has the topic `old`, of two partitions. made: what was really created."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.checked: list[str] = []

    def create_topics(self, topics: Iterable[NewTopic], *, validate_only: bool = False) -> list[CreateTopicResult]:
        listed = list(topics)
        (self.checked if validate_only else self.made).extend(one.name for one in listed)
        return [self._result(one) for one in listed]

    def _result(self, topic: NewTopic) -> CreateTopicResult:
        codes = {"bad": ErrorCode.INVALID_REPLICATION_FACTOR, "old": ErrorCode.TOPIC_ALREADY_EXISTS}
        code = codes.get(topic.name, ErrorCode.NONE)
        count = len(topic.assignment) if topic.assignment else max(topic.partitions, 1)
        return CreateTopicResult(
            name=topic.name,
            error_code=code,
            error_message=code.name if code else "",
            topic_id=bytes(16),
            num_partitions=count,
            replication_factor=2,
        )

    def describe_topic(self, name: str) -> Any:
        assert name == "old"
        return SimpleNamespace(topic_id=bytes(15) + b"1", partitions=[SimpleNamespace(replicas=(1, 2))] * 2)

    def describe_configs(self, name: str) -> Any:
        return SimpleNamespace(configs=[SimpleNamespace(name="retention.ms", value="5", source=1)])


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Admin:
    admin = Admin()

    @contextmanager
    def connected(_target: Any) -> Iterator[Any]:
        yield SimpleNamespace(admin=admin)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "connected", connected)
    monkeypatch.setattr(command, "find_target", lambda *_options: Target(bootstrap_servers="h:1", origin="-b"))
    return admin


def _file(*names: str, **more: Any) -> str:
    Path("t.json").write_text(json.dumps([{"topic": name, **more} for name in names]))
    return "t.json"


def test_one_that_is_refused_keeps_all_from_being_made(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topic", "create", "-f", _file("a", "bad", "b")]) == Exit.PRECONDITION
    said = capsys.readouterr().err
    assert "topic 'bad': INVALID_REPLICATION_FACTOR" in said and "1 of 3 topics cannot be created; nothing was" in said
    assert admin.made == [] and admin.checked == ["a", "bad", "b"]


def test_what_exists_is_refused_or_left_alone(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    file = _file("a", "old", partitions=3, configs={"retention.ms": 7})
    assert main(["topic", "create", "-f", file]) == Exit.PRECONDITION and admin.made == []
    assert "--if-not-exists leaves out" in capsys.readouterr().err
    assert main(["topic", "create", "-f", file, "--if-not-exists", "-o", "json"]) == 0 and admin.made == ["a"]
    made, old = json.loads(capsys.readouterr().out)
    assert made["created"] and made["partitions"] == 3 and made["differences"] == []
    assert not old["created"] and old["partitions"] == 2
    assert old["differences"] == ["2 partitions, not 3", "retention.ms=5, not 7"]


def test_a_dry_run_makes_nothing(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topic", "create", "-f", _file("a", "old"), "--if-not-exists", "--dry-run"]) == 0
    assert admin.made == [] and admin.checked == ["a", "old"]
    rows = capsys.readouterr().out.splitlines()[1:]
    assert [row.split()[0] for row in rows] == ["a", "old"] and "would create" in rows[0] and "exists" in rows[1]


@pytest.mark.parametrize("words", [["x", "-f", "t.json"], ["-f", "t.json", "--partitions", "2"], []])
def test_a_file_says_all_or_nothing(admin: Admin, words: list[str]) -> None:
    _file("a")
    assert main(["topic", "create", *words]) == Exit.USAGE and admin.checked == []


def test_brokers_in_another_order_are_the_same_brokers() -> None:
    assert differs(PRICES, [(2, 1), (1, 2)], {}) == [] and differs(PRICES, [(2, 3), (1, 2)], {}) == ["other brokers"]
    assert differs(WantedTopic(name="a"), [(1,)], {"retention.ms": "5"}) == []


BOMBS = [
    ("t.toml", f"[[topics]]\ntopic='a'\nconfigs.{'a.' * 5_000}b=1"),
    ("t.toml", f"[[topics]]\ntopic='a'\npartitions=0x{'f' * 10_000}"),
    ("t.toml", f"[[topics]]\ntopic='a'\npartitions={'9' * 10_000}"),
    ("t.toml", f"[[topics]]\ntopic='a'\npartitions={2**31}"),
    ("t.json", r'{"top\u0069cs":[{"topic":"a"}]}'),
    ("t.json", '{"topics":[{"topic":"a"}],"topics":[{"topic":"a"},{"topic":"b"}]}'),
    ("t.json", '{"topic":"a","configs":{"b":1,"b":2}}'),
    ("t.json", f'{{"topic":"a","assignment":[[{2**31}]]}}'),
    ("t.json", r'{"topic":"\ud800"}'),
    ("t.json", r'{"topic":"a","configs":{"b":"\ud800"}}'),
    ("t.json", "[" * 200_000),
]


@pytest.mark.parametrize(("name", "text"), BOMBS)
def test_a_file_that_is_made_to_break_a_reader_is_refused_in_words(name: str, text: str) -> None:
    with pytest.raises(CliError) as caught:
        wanted_topics(text, name)
    assert caught.value.code is Exit.DATA_INVALID
