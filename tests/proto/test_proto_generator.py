"""The generator on a schema of its own, `samplelog`: types, defaults, presence, errors, stale files."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import typing
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quorumlog.messages.decode_error import DecodeError

pytest.importorskip("grpc_tools")
pytest.importorskip("mypy_protobuf")

import generate as generator
from generate import ProtocFailed, generate, main, stale

BASE = """// Shared parts.
syntax = "proto3";
package samplelog.v1;

// How far a reader sees.
enum IsolationLevel {
  ISOLATION_LEVEL_READ_UNCOMMITTED = 0;
  // Hides open transactions.
  ISOLATION_LEVEL_READ_COMMITTED = 1;
}

message Endpoint {
  string host = 1;
  uint32 port = 2;
}
"""

SAMPLE = r"""// A sample of everything.
//
// With a "second" paragraph and a back\slash.
syntax = "proto3";
package samplelog.v1;

import "samplelog/v1/base.proto";

// Asks for all kinds.
message Everything {
  // Inclusive.
  int64 offset = 1;
  uint32 count = 2; // default: 7
  sint32 delta = 3; // default: -1; none
  double ratio = 4;
  bool flag = 5; // default: True
  string name = 6; // default: "x"
  bytes id = 7;
  bytes records = 8; // buffer default: b""
  optional string rack = 9;
  optional int32 leader = 10;
  Endpoint maybe = 11;
  // required
  Endpoint here = 12;
  repeated int32 nodes = 13;
  repeated Endpoint endpoints = 14;
  repeated string words = 15;
  IsolationLevel level = 16; // default: READ_COMMITTED
  optional IsolationLevel other = 17;
  repeated IsolationLevel levels = 18;
  oneof target {
    int64 at_offset = 19;
    Endpoint at_endpoint = 20;
  }
  Everything inner = 21;
  repeated Part parts = 22;
  message Part {
    enum Mode { OFF = 0; ON = 1; }
    Mode mode = 1;
  }
  repeated bytes blobs = 23;
}

message Empty {}

// The calls.
service Calls {
  // Asks.
  rpc Ask(Everything) returns (Empty);
  rpc Watch(stream Endpoint) returns (stream Empty);
}
"""


def write_schema(folder: Path, **files: str) -> Path:
    for stem, text in files.items():
        path = folder / "samplelog" / "v1" / f"{stem}.proto"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """The generated modules of the sample schema, imported."""
    folder = tmp_path_factory.mktemp("sample")
    schema = write_schema(folder / "proto", base=BASE, sample=SAMPLE)
    generate(schema, folder)
    sys.path.insert(0, str(folder))
    names = ("messages.base", "messages.sample", "messages.services", "rpc.convert.sample", "rpc.convert.services")
    modules = {name.replace(".", "_"): importlib.import_module(f"samplelog.{name}") for name in names}
    yield SimpleNamespace(folder=folder, schema=schema, **modules)
    sys.path.remove(str(folder))


def whole(sample: SimpleNamespace, **changes: Any) -> Any:
    """An Everything with every field set (of the oneof, the first member)."""
    m, endpoint = sample.messages_sample, sample.messages_base.Endpoint(host="h", port=9092)
    levels = sample.messages_base.IsolationLevel
    fields: dict[str, Any] = {
        "offset": 1 << 40, "count": 3, "delta": -5, "ratio": 0.5, "flag": True, "name": "é", "id": b"\x00\xff",
        "records": b"batch", "rack": "", "leader": 0, "maybe": endpoint, "here": endpoint, "nodes": (1, -1),
        "endpoints": (endpoint, endpoint), "words": ("a", ""), "level": levels.READ_UNCOMMITTED,
        "other": levels.READ_COMMITTED, "levels": (levels.READ_COMMITTED, levels.READ_UNCOMMITTED), "at_offset": 0,
        "inner": minimal(sample), "parts": (m.EverythingPart(mode=m.EverythingPartMode.ON),), "blobs": (b"", b"z"),
    }  # fmt: skip
    return m.Everything(**{**fields, **changes})


def minimal(sample: SimpleNamespace) -> Any:
    here = sample.messages_base.Endpoint(host="", port=0)
    return sample.messages_sample.Everything(offset=0, ratio=0.0, id=b"", here=here)


def test_defaults_and_required_arguments(sample: SimpleNamespace) -> None:
    message = minimal(sample)
    values = (message.count, message.delta, message.flag, message.name, message.records, message.level)
    assert values == (7, -1, True, "x", b"", sample.messages_base.IsolationLevel.READ_COMMITTED)
    assert (message.rack, message.maybe, message.other, message.at_offset) == (None, None, None, None)
    assert (message.nodes, message.endpoints, message.levels) == ((), (), ())
    with pytest.raises(TypeError, match="'offset'"):
        sample.messages_sample.Everything(ratio=0.0, id=b"", here=None)


def test_types(sample: SimpleNamespace) -> None:
    hints = typing.get_type_hints(sample.messages_sample.Everything)
    endpoint = sample.messages_base.Endpoint
    want = {
        "offset": int, "ratio": float, "records": bytes | bytearray | memoryview, "rack": str | None,
        "maybe": endpoint | None, "here": endpoint, "nodes": tuple[int, ...], "endpoints": tuple[endpoint, ...],
        "at_endpoint": endpoint | None, "parts": tuple[sample.messages_sample.EverythingPart, ...],
    }  # fmt: skip
    assert {name: hints[name] for name in want} == want


def test_comments_become_documentation(sample: SimpleNamespace) -> None:
    assert sample.messages_sample.__doc__.startswith(
        'A sample of everything.\n\nWith a "second" paragraph and a back\\slash.'
    )
    fields = inspect.getdoc(sample.messages_sample.Everything)
    assert fields is not None and fields.startswith("Asks for all kinds.\n\noffset: Inclusive.\ndelta: none")
    assert "READ_COMMITTED: Hides open transactions." in sample.messages_base.IsolationLevel.__doc__


def test_enums_lose_their_prefix(sample: SimpleNamespace) -> None:
    assert issubclass(sample.messages_base.IsolationLevel, IntEnum)
    assert [level.name for level in sample.messages_base.IsolationLevel] == ["READ_UNCOMMITTED", "READ_COMMITTED"]


def test_messages_are_values_and_slotted(sample: SimpleNamespace) -> None:
    one, other = minimal(sample), minimal(sample)
    assert one == other and hash(one) == hash(other) and one is not other
    assert not hasattr(one, "__dict__")


def test_round_trips(sample: SimpleNamespace) -> None:
    convert = sample.rpc_convert_sample
    endpoint = sample.messages_base.Endpoint(host="", port=0)
    for message in (whole(sample), minimal(sample), whole(sample, at_offset=None, at_endpoint=endpoint)):
        assert convert.decode_Everything(convert.encode_Everything(message)) == message


def test_absent_is_not_zero(sample: SimpleNamespace) -> None:
    convert = sample.rpc_convert_sample
    there = convert.decode_Everything(convert.encode_Everything(whole(sample)))
    assert (there.rack, there.leader, there.at_offset) == ("", 0, 0)
    gone = convert.decode_Everything(convert.encode_Everything(whole(sample, rack=None, leader=None, at_offset=None)))
    assert (gone.rack, gone.leader, gone.at_offset) == (None, None, None)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_buffer_may_be_any_of_three(sample: SimpleNamespace, kind: type) -> None:
    convert = sample.rpc_convert_sample
    back = convert.decode_Everything(convert.encode_Everything(whole(sample, records=kind(b"batch"))))
    assert back.records == b"batch" and type(back.records) is bytes


def test_two_members_of_a_oneof_are_our_mistake(sample: SimpleNamespace) -> None:
    both = whole(sample, at_endpoint=sample.messages_base.Endpoint(host="", port=0))
    with pytest.raises(AssertionError, match="more than one of target"):
        sample.rpc_convert_sample.encode_Everything(both)


def nested(levels: int) -> bytes:
    """An Everything inside an Everything (field 21), nested `levels` deep."""
    data = b"\x62\x00"
    for _ in range(levels):
        size = bytes([len(data) & 0x7F | 0x80, len(data) >> 7])
        data = b"\x62\x00\xaa\x01" + size + data
    return data


BAD_BYTES = [
    ("a required message is absent", b"", "Everything.here"),
    ("an unknown number of an enum", b"\x62\x00\x80\x01\x05", "Everything.level"),
    ("an unknown number in a list of enums", b"\x62\x00\x92\x01\x01\x05", "Everything.levels"),
    ("cut short", b"\x62\x05ab", "Everything"),
    ("text that is not UTF-8", b"\x62\x00\x32\x01\xff", "Everything"),
    ("nested deeper than any real message", nested(200), "Everything"),
]


@pytest.mark.parametrize(("data", "where"), [c[1:] for c in BAD_BYTES], ids=[c[0] for c in BAD_BYTES])
def test_bad_bytes_are_a_decode_error(sample: SimpleNamespace, data: bytes, where: str) -> None:
    with pytest.raises(DecodeError) as caught:
        sample.rpc_convert_sample.decode_Everything(data)
    assert caught.value.where.startswith(where)


RECORDS = """
syntax = "proto3";
package samplelog.v1;

// A part of a record.
message Piece { int32 a = 1; }

// Type 1000, from metadata.version 1, 2 and 7 on. In
// two lines.
message Long {
  // @2.
  repeated string later = 1;
  // @1. In order.
  repeated Piece pieces = 2;
  int32 first = 3;
}

// Type 3.
message Short {}
"""


def test_a_table_of_records(tmp_path: Path) -> None:
    generate(write_schema(tmp_path / "proto", records=RECORDS), tmp_path)
    program = ast.parse((tmp_path / "samplelog/rpc/convert/records.py").read_text())  # its layout is ruff's, or none
    rows = ast.unparse(program).split("RECORD_TYPES")[-1]
    assert "RecordType(3, Short, encode_Short, pb.Short, read_Short, (1,), ())" in rows
    assert "1000, Long, encode_Long, pb.Long, read_Long, (1, 2, 7), (('pieces',), ('later',))" in rows
    assert rows.index("Short") < rows.index("Long")
    assert "MetadataRecord = Long | Short\n" in (tmp_path / "samplelog/messages/records.py").read_text()


@pytest.mark.parametrize(
    ("text", "wrong", "says"),
    [
        ("Type 3.", "Type 3, versions 0 and 1.", "not a record's type"),
        ("1, 2 and 7", "1, 7 and 2", "ascend"),
        ("@2.", "@3.", "no version 3"),
    ],
)
def test_a_record_that_the_schema_describes_badly(tmp_path: Path, text: str, wrong: str, says: str) -> None:
    with pytest.raises(ProtocFailed, match=says):
        generate(write_schema(tmp_path / "proto", records=RECORDS.replace(text, wrong)), tmp_path)


def test_tables_of_services(sample: SimpleNamespace) -> None:
    ask, watch = sample.messages_services.METHODS
    assert (ask.path, ask.doc, ask.client_streaming) == ("/samplelog.v1.Calls/Ask", "Asks.", False)
    assert (watch.path, watch.client_streaming, watch.server_streaming) == ("/samplelog.v1.Calls/Watch", True, True)
    codec = sample.rpc_convert_services.CODECS[ask.request]
    assert codec.decode_request(codec.encode_request(whole(sample))) == whole(sample)
    assert codec.decode_response(codec.encode_response(ask.response())) == ask.response()


def test_a_second_run_changes_nothing(sample: SimpleNamespace) -> None:
    before = {path: path.stat().st_mtime_ns for path in sample.folder.rglob("*.py")}
    generate(sample.schema, sample.folder)
    assert {path: path.stat().st_mtime_ns for path in sample.folder.rglob("*.py")} == before


def test_stale_files_are_named(sample: SimpleNamespace) -> None:
    assert stale(sample.schema, sample.folder) == []
    touched = sample.folder / "samplelog" / "messages" / "base.py"
    text = touched.read_text()
    left_over = touched.with_name("gone.py")
    try:
        touched.write_text(text.replace("port: int", "port: str"))
        left_over.write_text('"""Written by `./dev proto` from nowhere."""\n')
        assert stale(sample.schema, sample.folder) == ["samplelog/messages/base.py", "samplelog/messages/gone.py"]
        touched.write_text(text.replace("port: int", "port:  int  # laid out otherwise"))
        assert stale(sample.schema, sample.folder) == ["samplelog/messages/gone.py"]
    finally:
        touched.write_text(text)
        left_over.unlink()


AWKWARD = """// Opens with prose.
//
//   A list, indented:
//     - one	and a tab
//
//   - two
syntax = "proto3";
package samplelog.v1;

// "Quoted" is the first word.
//
// And "the last".
message Quotes {
  // Two paragraphs of a field.
  //
  // The second.
  int32 a = 1;
  // default: 3; none
  int32 b = 2;
}

// Closing with "a quote"
enum Choice { CHOICE_NO = 0; }

// Closing with a backslash \\\\
message Blank { }
"""


@pytest.fixture
def no_formatter(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the environment of the tests, which has no ruff."""
    monkeypatch.setattr(generator, "_formatter", lambda: None)


@pytest.mark.usefixtures("no_formatter")
def test_no_line_of_a_docstring_ends_with_blanks(tmp_path: Path) -> None:
    generate(write_schema(tmp_path / "proto", base=BASE, sample=SAMPLE, awkward=AWKWARD), tmp_path)
    for path in sorted(tmp_path.rglob("messages/*.py")):
        lines = path.read_text().splitlines()
        assert [(path.name, number) for number, line in enumerate(lines, 1) if line != line.rstrip()] == []


def test_a_formatter_changes_no_program_and_no_docstring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if generator._formatter() is None:
        pytest.skip("ruff is part of the development environment")
    schema = write_schema(tmp_path / "proto", base=BASE, sample=SAMPLE, awkward=AWKWARD)
    (tmp_path / "formatted").mkdir()
    formatted = generate(schema, tmp_path / "formatted")
    monkeypatch.setattr(generator, "_formatter", lambda: None)
    assert stale(schema, tmp_path / "formatted") == []
    docs = [ast.get_docstring(ast.parse((tmp_path / "formatted" / path).read_text())) for path in formatted]
    assert any(doc and doc.startswith("Opens with prose.\n\n  A list, indented:\n    - one") for doc in docs)


REFUSED = [
    ("a map", "message M { map<string, int32> m = 1; }", "maps are not supported"),
    ("a keyword", "message M { int32 from = 1; }", "M.from"),
    ("a field named like its type", "message M { int64 bytes = 1; }", "M.bytes"),
    ("default of another type", "message M {\n  int32 a = 1; // default: b\"\"\n}", "is not of type int"),
    ("default of a list", "message M {\n  repeated int32 a = 1; // default: 1\n}", "only a single scalar"),
    ("required scalar", "message M {\n  int32 a = 1; // required\n}", "only a single message"),
    ("buffer that is text", "message M {\n  string a = 1; // buffer\n}", "only a single bytes"),
    ("one request, two methods", "message M {}\nservice S { rpc A(M) returns (M); rpc B(M) returns (M); }", "both"),
    ("foreign", 'import "google/protobuf/empty.proto";\nmessage M { google.protobuf.Empty e = 1; }', "of this schema"),
    ("protoc's own refusals", "message M { int32 a = 1; int32 b = 1; }", "already been used"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_refused_schemas_say_why(tmp_path: Path, text: str, reason: str) -> None:
    head, _, rest = text.rpartition("\n") if text.startswith("import") else ("", "", text)
    schema = write_schema(tmp_path, bad=f'syntax = "proto3";\npackage samplelog.v1;\n{head}\n{rest}\n')
    (tmp_path / "out").mkdir()
    with pytest.raises(ProtocFailed, match=reason):
        generate(schema, tmp_path / "out")


def test_the_committed_files_are_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--check"])
    assert code == 0, f"run ./dev proto:\n{capsys.readouterr().out}"


@pytest.mark.usefixtures("no_formatter")
def test_the_committed_files_are_fresh_without_a_formatter(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--check"])
    assert code == 0, f"docstrings differ from what ruff leaves:\n{capsys.readouterr().out}"
