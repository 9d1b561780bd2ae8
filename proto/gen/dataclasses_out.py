"""Writes `<root>/messages/<file>.py`: an IntEnum for each enum, a frozen dataclass for each message."""

from __future__ import annotations

import ast
import textwrap

from layout import docstring, heading, imports, used_elsewhere
from schema import Enum, Field, File, Message, SchemaError


def render(file: File) -> str:
    """The whole module. Enums come first, because a default may name a member."""
    fields = [field for message in file.messages for field in message.fields]
    parts = [heading(file.doc, file.path)]
    if file.enums:
        parts.append("from enum import IntEnum\n")
    if any(field.comment.buffer for field in fields):
        names = "Buffer, Pieces" if any(field.comment.pieces for field in fields) else "Buffer"
        parts.append(f"from quorumlog.messages.buffer import {names}\n")
    if file.messages:
        parts.append("from quorumlog.messages.message import message\n")
    parts.append(imports(f"{file.root}.messages", used_elsewhere(file)))
    parts += [_enum(enum) for enum in file.enums]
    parts += [_message(message) for message in file.messages]
    records = [message.name.python for message in file.messages if message.record is not None]
    if records:
        parts.append(f"\nMetadataRecord = {' | '.join(records)}\n")
    return "\n".join(parts)


def _enum(enum: Enum) -> str:
    docs = "\n".join(f"{name}: {_hang(doc)}" for name, _, doc in enum.values if doc)
    body = [f"    {name} = {number}\n" for name, number, _ in enum.values]
    return f"\nclass {enum.name.python}(IntEnum):\n" + _documented(enum.doc, docs) + "".join(body)


def _message(message: Message) -> str:
    docs = "\n".join(f"{field.name}: {_hang(field.comment.doc)}" for field in message.fields if field.comment.doc)
    body = [f"    {field.name}: {annotation(field)}{_default(field)}\n" for field in message.fields]
    text = _documented(message.doc, docs) + "".join(body)
    heads = f"\n@message(frozen=True, slots=True, kw_only=True)\nclass {message.name.python}:\n"
    return heads + (text or "    pass\n")


def _documented(doc: str, members: str) -> str:
    text = docstring("\n\n".join(filter(None, (doc, members))), "    ")
    return f"{text}\n" if text else ""


def _hang(doc: str) -> str:
    return textwrap.indent(doc, "    ").lstrip()


def annotation(field: Field) -> str:
    """The field's type in Python."""
    name = field.foreign.python if field.foreign else str(field.scalar)
    if field.comment.buffer:
        name = "Buffer | Pieces" if field.comment.pieces else "Buffer"
    if field.repeated:
        return f"tuple[{name}, ...]"
    if field.optional or (field.message is not None and not field.comment.required):
        return f"{name} | None"
    return name


def _default(field: Field) -> str:
    if field.repeated:
        return " = ()"
    if field.comment.default is not None:
        return f" = {_literal(field, field.comment.default)}"
    return " = None" if annotation(field).endswith("| None") else ""


KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "bytes": (bytes,),
    "bool": (bool,),
}


def _literal(field: Field, source: str) -> str:
    """The default's source, after a check that its type is the field's."""
    if field.enum is not None:
        if not source.isidentifier():
            raise SchemaError(f"{field.name}: the default {source} is not a member of {field.enum.python}")
        return f"{field.enum.python}.{source}"
    try:
        value = ast.literal_eval(source)
    except ValueError as error:
        raise SchemaError(f"{field.name}: the default {source} is not a literal") from error
    if not (value is None and field.optional) and type(value) not in KINDS[str(field.scalar)]:
        raise SchemaError(f"{field.name}: the default {source} is not of type {field.scalar}")
    return source
