"""Writes `<root>/rpc/convert/<file>.py`: four straight-line functions for each message.

`fill_X` copies into an existing protobuf object (a sub-message is filled in place, not copied). `read_X` copies out of
one. `encode_X` and `decode_X` convert to and from bytes. Records of the metadata log also stand in a table.
"""

from __future__ import annotations

from layout import heading, imports, used_elsewhere
from schema import Field, File, Message, Record, TypeName


def render(file: File) -> str:
    """The whole module."""
    fields = [field for message in file.messages for field in message.fields]
    outside = used_elsewhere(file)
    is_message = {field.message for field in fields if field.message is not None}
    own = [message.name for message in file.messages] + [f.enum for f in fields if f.enum is not None]
    helpers = ["parse"]
    helpers += ["enum_of"] if any(field.enum for field in fields) else []
    helpers += ["absent"] if any(field.comment.required for field in fields) else []
    parts = [
        heading("Converts between dataclasses and protobuf.", file.path),
        "from quorumlog.messages.buffer import Buffer\n",
        imports(f"{file.root}.messages", own),
        imports(f"{file.root}.rpc.convert", [n for n in outside if n in is_message], "fill_", "read_"),
        f"from quorumlog.rpc.convert.parsing import {', '.join(sorted(helpers))}\n",
        f"from {file.root}.rpc.pb import {file.stem}_pb2 as pb\n",
        _enum_modules(file, [n for n in outside if n not in is_message]),
        "from quorumlog.rpc.convert.record_type import RecordType\n" if _records(file) else "",
    ]
    functions = "".join(_functions(file, message) for message in file.messages)
    return "\n".join(part for part in parts if part) + functions + _record_types(file)


def _enum_modules(file: File, enums: list[TypeName]) -> str:
    """Imports of the stubs of other files' enums, of which only the value type is used."""
    modules = sorted({name.module for name in enums})
    return "".join(f"from {file.root}.rpc.pb import {module}_pb2 as {module}_pb\n" for module in modules)


def _functions(file: File, message: Message) -> str:
    name, pb = message.name.python, f"pb.{message.name.pb}"
    oneofs = "".join(_one_at_most(message, oneof) for oneof in message.oneofs)
    fills = "".join(f"    {line}\n" for field in message.fields for line in _fill(file, field))
    reads = "".join(f"        {field.name}={_read(name, field)},\n" for field in message.fields)
    return f"""

def fill_{name}(m: {name}, p: {pb}) -> None:
{oneofs}{fills or "    pass" + chr(10)}

def read_{name}(p: {pb}) -> {name}:
    return {name}({chr(10) + reads + "    " if reads else ""})


def encode_{name}(m: {name}) -> bytes:
    p = {pb}()
    fill_{name}(m, p)
    return p.SerializeToString()


def decode_{name}(data: Buffer) -> {name}:
    return read_{name}(parse({pb}, data))
"""


def _records(file: File) -> list[tuple[Record, TypeName]]:
    """By their numbers."""
    found = [(message.record, message.name) for message in file.messages if message.record is not None]
    return sorted(found, key=lambda one: one[0].number)


def _record_types(file: File) -> str:
    """The table of the metadata log's records; "" for a file without one."""
    rows = [
        f"    RecordType({record.number}, {name.python}, encode_{name.python}, pb.{name.pb}, read_{name.python}, "
        f"{record.levels!r}, {record.added!r}),\n"
        for record, name in _records(file)
    ]
    return f"\n\nRECORD_TYPES: tuple[RecordType, ...] = (\n{''.join(rows)})\n" if rows else ""


def _one_at_most(message: Message, oneof: str) -> str:
    members = [field.name for field in message.fields if field.oneof == oneof]
    counted = " + ".join(f"(m.{member} is not None)" for member in members)
    return f'    assert {counted} <= 1, "more than one of {oneof}"\n'


def _fill(file: File, field: Field) -> list[str]:
    """The statements that copy one field into `p`."""
    source, target = f"m.{field.name}", f"p.{field.name}"
    if field.message is not None:
        return _fill_message(field.message, field, source, target)
    if field.repeated:
        items = f"[{_value_of(file, field, 'x')} for x in {source}]" if field.enum else source
        return [f"{target}.extend({items})"]
    copy = f"{target} = {_value_of(file, field, source)}"
    return [f"if {source} is not None:", f"    {copy}"] if field.optional else [copy]


def _fill_message(name: TypeName, field: Field, source: str, target: str) -> list[str]:
    if field.repeated:
        one = f"x_{field.name}"
        return [f"for {one} in {source}:", f"    fill_{name.python}({one}, {target}.add())"]
    present = [f"{target}.SetInParent()", f"fill_{name.python}({source}, {target})"]  # present even if all fields are 0
    if field.comment.required:
        return present
    return [f"if {source} is not None:", *(f"    {line}" for line in present)]


def _value_of(file: File, field: Field, source: str) -> str:
    if field.enum is not None:
        module = "pb" if field.enum.module == file.stem else f"{field.enum.module}_pb"
        return f"{module}.{field.enum.pb}.ValueType({source})"
    if field.comment.buffer:
        return f"{source} if type({source}) is bytes else bytes({source})"
    return source


def _read(owner: str, field: Field) -> str:
    """The expression that copies one field out of `p`."""
    source, where = f"p.{field.name}", f'"{owner}.{field.name}"'
    if field.repeated:
        one = _read_one(field, "x", where)
        if one == "x":
            return f"tuple({source}[:])"  # the slice is made in C; iterating over the container takes twice as long
        return f"tuple([{one} for x in {source}])"
    one = _read_one(field, source, where)
    if field.message is None and not field.optional:
        return one
    otherwise = f"absent({where})" if field.comment.required else "None"
    return f'{one} if p.HasField("{field.name}") else {otherwise}'


def _read_one(field: Field, source: str, where: str) -> str:
    if field.message is not None:
        return f"read_{field.message.python}({source})"
    return f"enum_of({field.enum.python}, {source}, {where})" if field.enum is not None else source
