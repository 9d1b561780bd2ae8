"""`produce` and `consume` with a registry, over a real node: all three formats, and what goes wrong."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from http_registry import HttpRegistry, serving

from quorumlog_cli.main import main
from tests.scenarios.one_node import LANE, RealNode

QUICK_S = 30.0  # on a machine that is busy
AVRO = json.dumps(
    {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}]}
)
JSON = json.dumps({"type": "object", "required": ["id"]})
PROTO = 'syntax = "proto3"; message Other { int32 n = 1; } message Order { int32 id = 1; string note = 2; }'
FILES = {"order.avsc": AVRO, "order.json": JSON, "order.proto": PROTO}
SUFFIXES = {Path(name).suffix for name in FILES}
Types = Callable[..., "Done"]


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    made = RealNode(tmp_path_factory.mktemp("schemas"))
    yield made
    made.close()


@pytest.fixture
def http() -> Iterator[HttpRegistry]:
    with serving(HttpRegistry()) as made:
        yield made


@pytest.fixture
def types(node: RealNode, http: HttpRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Types:
    """In this process, on a thread: the node needs the loop."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)

    def run(*arguments: str, stdin: str = "", url: str | None = None) -> Done:
        """url: of the registry; "": none is named."""
        named = http.url if url is None else url
        of_registry = ["-X", f"schema.registry.url={named}"] if named else []
        places = [tmp_path / name for name in ("stdin", "stdout", "stderr")]
        places[0].write_text(stdin)
        with ExitStack() as stack, monkeypatch.context() as patched:
            for place, mode in zip(places, ("r", "w", "w"), strict=True):
                patched.setattr(sys, place.name, stack.enter_context(place.open(mode)))
            files = [
                str(tmp_path / one) if Path(one.partition("#")[0]).suffix in SUFFIXES else one for one in arguments
            ]
            given = [*files, "-b", str(node.node.addresses[LANE]), *of_registry]
            code = node.do(asyncio.to_thread(main, given))
        return Done(code, places[1].read_text(), places[2].read_text())

    return run


def test_three_formats_go_in_and_come_out_as_json(types: Types, http: HttpRegistry) -> None:
    line = '{"id": 7, "note": "ü"}'
    for number, schema in enumerate(("order.avsc", "order.json", "order.proto#Order"), 1):
        done = types("produce", "all", "--value-schema", schema, stdin=line + "\n")
        assert done.returncode == 0, done.stderr
        assert len(http.schemas) == number
    shown = types("consume", "all", "-e", "--value-decoder", "schema", "-J")
    assert shown.returncode == 0, shown.stderr
    found = [json.loads(json.loads(one)["value"]) for one in shown.stdout.splitlines()]
    assert found == [json.loads(line)] * 3
    raw = types("consume", "all", "-e", "-J", url="")
    assert [json.loads(one)["value"][:5] for one in raw.stdout.splitlines()] == [f"\0\0\0\0{chr(n)}" for n in (1, 2, 3)]


def test_an_id_and_a_subject_name_schemas_and_keys_have_their_own(types: Types, http: HttpRegistry) -> None:
    assert types("produce", "first", "--value-schema", "order.avsc", stdin='{"id":1,"note":""}\n').returncode == 0
    how = ["-K", "|", "--key-schema", "1", "--value-schema", "first-value"]
    done = types("produce", "second", *how, stdin='{"id":2,"note":"k"}|{"id":3,"note":"v"}\n')
    assert done.returncode == 0, done.stderr
    decoders = ["--key-decoder", "schema", "--value-decoder", "schema"]
    shown = types("consume", "second", "-e", *decoders, "-f", r"%k|%s\n", "--where", "$.id = 3")
    assert shown.stdout == '{"id": 2, "note": "k"}|{"id": 3, "note": "v"}\n' and list(http.subjects) == ["first-value"]
    assert types("consume", "second", "-e", *decoders, "--tail", "5", "--where", "$.id = 4").stdout == ""
    assert types("consume", "second", "-e", *decoders, "--tail", "5", "--where", "$.id = 3").stdout != ""


def test_a_record_that_cannot_be_decoded_is_named_and_the_others_are_shown(types: Types) -> None:
    good = '{"id":1,"note":"a"}\n'
    assert types("produce", "mixed", "--value-schema", "order.avsc", "-p", "0", stdin=good).returncode == 0
    assert types("produce", "mixed", "-p", "0", stdin="text\n", url="").returncode == 0
    assert types("produce", "mixed", "--value-schema", "order.avsc", "-p", "0", stdin=good).returncode == 0
    shown = types("consume", "mixed", "-e", "--value-decoder", "schema")
    assert shown.stdout == '{"id": 1, "note": "a"}\ntext\n{"id": 1, "note": "a"}\n'
    assert "mixed-0 offset 1: the value as bytes: the first byte is 116" in shown.stderr
    assert shown.stderr.count("as bytes") == 1 and shown.returncode == 0


def test_a_line_that_does_not_fit_its_schema_ends_the_input(types: Types) -> None:
    lines = '{"id":1,"note":"a"}\n{"id":"x"}\n{"id":2,"note":"b"}\n'
    done = types("produce", "lines", "--value-schema", "order.avsc", stdin=lines)
    assert done.returncode == 9 and "line 2: it does not fit the schema" in done.stderr
    assert "1 record before it written, nothing after it" in done.stderr
    assert types("consume", "lines", "-e", "--value-decoder", "schema").stdout == '{"id": 1, "note": "a"}\n'


@pytest.mark.parametrize(
    ("arguments", "url", "code", "said"),
    [
        (["produce", "t", "--value-schema", "order.avsc"], "", 2, "no schema registry is named"),
        (["consume", "t", "-e", "--value-decoder", "avro"], "", 2, "string, integer, long, hex, schema"),
        (["produce", "t", "--value-schema", "order.avsc"], "http://127.0.0.1:1", 3, "gave no answer"),
        (["produce", "t", "--value-schema", "absent.avsc"], None, 7, "absent.avsc: No such file"),
        (["produce", "t", "--value-schema", "absent-value"], None, 7, "40401"),
        (["produce", "t", "--value-schema", "9"], None, 7, "40403"),
        (["produce", "t", "--value-schema", "order.avsc#Order"], None, 2, "only a Protobuf schema"),
        (["produce", "t", "--value-schema", ""], None, 2, "a schema is a file"),
        (
            ["produce", "t", "--value-schema", "order.avsc", "-X", "auto.register.schemas=false"],
            None,
            7,
            "'t-value' not found",
        ),
        (
            ["produce", "t", "--value-schema", "order.avsc", "-X", "auto.register.schemas=perhaps"],
            None,
            2,
            "true or false",
        ),
    ],
)
def test_what_cannot_be_done_is_said_at_once(
    types: Types, arguments: list[str], url: str | None, code: int, said: str
) -> None:
    began = time.monotonic()
    done = types(*arguments, stdin="{}\n", url=url)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr and time.monotonic() - began < QUICK_S


def test_a_registry_that_is_gone_ends_a_consumer(types: Types) -> None:
    good = '{"id":1,"note":"a"}\n'
    assert types("produce", "gone", "--value-schema", "order.avsc", stdin=good).returncode == 0
    done = types("consume", "gone", "-e", "--value-decoder", "schema", url="http://127.0.0.1:1")
    assert done.returncode == 3 and done.stdout == "" and "start the registry" in done.stderr


def test_without_the_package_the_command_says_what_to_install(types: Types, monkeypatch: pytest.MonkeyPatch) -> None:
    good = '{"id":1,"note":"a"}\n'
    with monkeypatch.context() as hidden:
        hidden.setitem(sys.modules, "fastavro", None)
        hidden.delitem(sys.modules, "quorumlog.schemas.formats.avro", raising=False)
        done = types("produce", "package", "--value-schema", "order.avsc", stdin=good)
    assert done.returncode == 6 and "pip install 'quorumlog[schema]'" in done.stderr
