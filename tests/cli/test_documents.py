"""What commands print with `-o json` is declared: all of it, field by field, and what programs read today stays.

`documents.txt` is the kept copy, a line for each field. A line that is missing there is new, and
`python -m tests.cli.test_documents` adds it; nothing takes a line away, or changes its type, but a hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from jsonschema import Draft202012Validator

from quorumlog_cli.command_tree import all_commands
from quorumlog_cli.documents.schema import NoForm, Opaque, has_more, schema_of
from quorumlog_cli.documents.table import DOCUMENTS, FAILURE, Prints
from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import CliError, Exit, report
from tests.documents import check_document, command_of

KEPT = Path(__file__).with_name("documents.txt")
LEAST_FIELDS = 700  # that are described in all: nobody makes the forms vague and the tests pass

# Values whose form others decide, and dictionaries with fields that are not named.
OPAQUE = {
    "metadata dump": "records of the metadata have forms of their own, with versions: proto/ has them",
    "log dump": "a record shown by its meaning, as the metadata and internal topics have it",
    "generate grafana": "Grafana's form",
    "server start": "the events of a node's log",
    "server config show": "settings have types of their own: docs/settings.md",
    "server config explain": "the default of a setting has the setting's type",
    "profile show": "options have types of their own: docs/client-options.md",
    "bench produce": "options that were given",
    "bench consume": "options that were given",
    "bench e2e": "options that were given",
    "spark pin list": "the offset of a stream, which Spark's checkpoint keeps",
    "schema": "a schema, which JSON Schema describes",
}


def fields(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(path, type) of each field of the documents; ? behind the path: it is not always there."""
    yield from _fields(schema, schema.get("$defs", {}), "")


def _fields(part: dict[str, Any], kinds: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    if "$ref" in part:
        part = kinds[part["$ref"].rpartition("/")[2]]
    if "anyOf" in part:
        for each in part["anyOf"]:
            yield from _fields(each, kinds, path)
    elif part.get("type") == "array":
        places = {f"[{number}]": each for number, each in enumerate(part.get("prefixItems", ()))}
        for place, each in (places or {"[]": part["items"]}).items():
            yield from _fields(each, kinds, path + place)
    elif part.get("type") == "object":
        for name, each in part.get("properties", {}).items():
            sometimes = "" if name in part["required"] else "?"
            yield from _fields(each, kinds, f"{path}.{name}{sometimes}")
        if "additionalProperties" in part:
            yield from _fields(part["additionalProperties"], kinds, f"{path}.*")
    else:
        yield path, _type(part)


def _type(part: dict[str, Any]) -> str:
    if "enum" in part:
        return "|".join(map(json.dumps, part["enum"]))
    kind = part.get("type", "any")
    return kind if isinstance(kind, str) else "|".join(kind)


def declared() -> list[str]:
    found = {
        f"{command}: {path or '.'} {kind}"
        for command, prints in DOCUMENTS.items()
        for path, kind in fields(prints.schema())
    }
    return sorted(found)


def test_every_command_declares_what_it_prints() -> None:
    commands = {" ".join(one.path) for one in all_commands() if not one.is_group}
    assert set(DOCUMENTS) - {FAILURE} == commands


@pytest.mark.parametrize("command", DOCUMENTS)
def test_a_schema_is_one_and_says_something(command: str) -> None:
    prints = DOCUMENTS[command]
    Draft202012Validator.check_schema(prints.schema())
    found = dict(fields(prints.schema()))
    assert (found and any(kind != "any" for kind in found.values())) or command in OPAQUE
    assert ("any" in found.values()) is (command in OPAQUE), "OPAQUE lists what is left open, and why"


def test_the_forms_are_not_vague() -> None:
    kinds = [kind for prints in DOCUMENTS.values() for _, kind in fields(prints.schema())]
    assert sum(kind != "any" for kind in kinds) >= LEAST_FIELDS


def test_what_programs_read_stays() -> None:
    kept, now = KEPT.read_text().splitlines(), declared()
    gone = sorted(set(kept) - set(now))
    assert not gone, f"programs read what is not declared any more, or has another type: {gone}"
    new = sorted(set(now) - set(kept))
    assert not new, f"python -m {__name__} keeps what is new: {new}"


def test_a_document_with_another_form_is_found() -> None:
    right = {"current": "a", "file": "f"}
    check_document("profile use", right)
    for wrong in ({"current": "a"}, {**right, "more": 1}, {**right, "file": None}, [right]):
        with pytest.raises(AssertionError, match="quorumlog profile use -o json"):
            check_document("profile use", wrong)
    with pytest.raises(AssertionError, match="no document on lines"):
        check_document("profile use", right, on_lines=True)


class Vague(TypedDict):
    value: object


class Bare(TypedDict):
    value: dict[str, Any]


@has_more("whatever else")
class Open(TypedDict):
    value: Annotated[Any, Opaque("whatever")]


def test_a_field_without_a_form_needs_a_reason() -> None:
    for kind in (Vague, Bare):
        with pytest.raises(NoForm):
            schema_of(kind)
    (found,) = schema_of(Open, closed=True)["$defs"].values()
    assert found["properties"]["value"] == {"description": "whatever"}
    assert found["additionalProperties"] == {"description": "whatever else"}


def test_an_alias_is_the_command() -> None:
    assert (
        command_of(["txn", "list", "--state", "ongoing"]) == command_of(["transaction", "list"]) == "transaction list"
    )
    assert command_of(["docs", "operations"]) == "docs"


def test_errors_have_a_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topic", "list", "--nonsense", "-o", "json"]) == Exit.USAGE
    check_document(FAILURE, json.loads(capsys.readouterr().err))
    report(CliError(Exit.NOT_FOUND, "no such thing", "look elsewhere"))
    check_document(FAILURE, json.loads(capsys.readouterr().err))


def test_users_get_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "topic", "list"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == DOCUMENTS["topic list"].schema() and "additionalProperties" not in json.dumps(said)
    assert main(["schema", "-o", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)["commands"]
    assert [one["command"] for one in listed] == list(DOCUMENTS)
    assert main(["schema"]) == 0
    assert "topic list" in capsys.readouterr().out
    assert main(["schema", "topic", "lsit"]) == Exit.NOT_FOUND
    assert "did you mean topic list" in capsys.readouterr().err


def test_lines_are_said_to_be_lines() -> None:
    assert Prints(line=Open).schema()["description"] == "one such document on each line"


if __name__ == "__main__":
    KEPT.write_text("\n".join(sorted({*KEPT.read_text().splitlines(), *declared()})) + "\n")
