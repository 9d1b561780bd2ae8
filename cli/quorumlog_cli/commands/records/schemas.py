"""Keys and values by decoders and by a schema registry: what `consume` shows, and what `produce` writes.

A registry that does not answer ends a command. A record that its decoder refuses does not: it is told, and shown as
bytes. Loaded only by a command that decodes or encodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorumlog.client.looking.matching import Looked, Where
from quorumlog.client.security.registry_names import OF_SERIALIZERS, URL
from quorumlog.schemas import (
    AvroSerializer,
    BadValue,
    JsonSerializer,
    Kind,
    ProtobufSerializer,
    RegistryForbids,
    RegistryUnavailable,
    SchemaDeserializer,
    SchemaError,
    SchemaRegistry,
)
from quorumlog.schemas.errors import MissingPackage
from quorumlog_cli.offline.decoders import DECODERS, decoder
from quorumlog_cli.profiles.client_security import of_registry
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.records_text import BadLine

if TYPE_CHECKING:
    from quorumlog.client.consumer import ConsumedRecord
    from quorumlog.schemas.serializers import SchemaSerializer
    from quorumlog_cli.profiles.profile import Target

SCHEMA = "schema"
MAX_TOLD = 20  # records that are named because a decoder refuses them; the others are counted
MAX_SCHEMA_BYTES = 4 * 1024 * 1024
KINDS = {".avsc": Kind.AVRO, ".json": Kind.JSON, ".proto": Kind.PROTOBUF}
SERIALIZERS = {Kind.AVRO: AvroSerializer, Kind.JSON: JsonSerializer, Kind.PROTOBUF: ProtobufSerializer}
Decode = Callable[["ConsumedRecord", bytes], str | int]
Encode = Callable[[bytes], bytes]


@contextmanager
def registry_of(target: Target) -> Iterator[SchemaRegistry]:
    """For the block, whose errors of the registry get a hint. Raises CliError, ConfigError."""
    if URL not in target.registry:
        raise CliError(
            Exit.USAGE,
            "no schema registry is named",
            "give -X schema.registry.url=http://HOST:8081, or QUORUMLOG_SCHEMA_REGISTRY_URL, or a profile that has it",
        )
    try:
        yield SchemaRegistry(of_registry(target.registry))
    except RegistryUnavailable as error:
        raise CliError(Exit.UNREACHABLE, str(error), "start the registry; without a schema, bytes are shown") from error


# --- of consume ---


@dataclass(slots=True)
class Decoding:
    """Records as they are shown. key, value: None: as bytes. failed: keys and values that a decoder has refused."""

    key: Decode | None
    value: Decode | None
    failed: int = 0

    def of(self, record: ConsumedRecord, *, tells: bool = True) -> ConsumedRecord:
        """tells: what cannot be decoded is named. Raises what ends the command: no answer, no right, no package."""
        key = self._part(self.key, record, record.key, "key", tells)
        value = self._part(self.value, record, record.value, "value", tells)
        return replace(record, key=key, value=value)

    def _part(
        self, decode: Decode | None, record: ConsumedRecord, data: bytes | None, what: str, tells: bool
    ) -> bytes | None:
        if decode is None or data is None:
            return data
        try:
            return str(decode(record, data)).encode("utf-8", "backslashreplace")
        except (RegistryUnavailable, RegistryForbids, MissingPackage):
            raise
        except SchemaError as error:
            if tells:
                self._tell(f"{record.topic}-{record.partition} offset {record.offset}: the {what} as bytes: {error}")
            return data

    def _tell(self, text: str) -> None:
        self.failed += 1
        if self.failed <= MAX_TOLD:
            output.say(f"% {text}")
        if self.failed == MAX_TOLD:
            output.say("% further ones are only counted")

    def tell_count(self) -> None:
        if self.failed > MAX_TOLD:
            output.say(f"% {self.failed} keys and values could not be decoded, and are shown as bytes")

    def where(self, where: Where) -> Where:
        """The same conditions, of what is shown."""
        return _WhereShown(where.conditions, self)


@dataclass(frozen=True, slots=True)
class _WhereShown(Where):
    decoding: Decoding | None = None

    def fits(self, record: Looked) -> bool:
        assert self.decoding is not None
        shown: Any = record
        return Where(self.conditions).fits(self.decoding.of(shown, tells=False))


@contextmanager
def decoding(target: Target, key: str | None, value: str | None) -> Iterator[Decoding]:
    """key, value: names of decoders; None: bytes. Raises CliError."""
    for name in (key, value):
        if name not in (None, SCHEMA) and decoder(name or "") is None:
            raise CliError(Exit.USAGE, f"{name!r} is no decoder that is known here: {', '.join([*DECODERS, SCHEMA])}")
    if SCHEMA not in (key, value):
        yield Decoding(_decode(key), _decode(value))
        return
    with registry_of(target) as registry:
        made = Decoding(_decode(key, registry, is_key=True), _decode(value, registry))
        try:
            yield made
        finally:
            made.tell_count()


def _decode(name: str | None, registry: SchemaRegistry | None = None, *, is_key: bool = False) -> Decode | None:
    if name is None:
        return None
    if name == SCHEMA:
        assert registry is not None
        read = SchemaDeserializer(registry, is_key=is_key)
        return lambda record, data: read.text(record.headers, data)
    plain = decoder(name)
    assert plain is not None
    return lambda record, data: plain(data)


# --- of produce ---


def encoding(target: Target, registry: SchemaRegistry, topic: str, given: str, *, is_key: bool = False) -> Encode:
    """given: a file, an id, or a subject whose latest version is meant; of Protobuf also FILE#MESSAGE.

    Asks the registry once, so that what is wrong with the schema is told before a line is read. The function raises
    BadLine for text that does not fit. Raises CliError, SchemaError, OSError.
    """
    write = _serializer(target, registry, given, is_key=is_key)
    write.schema_id(topic)

    def encode(line: bytes) -> bytes:
        try:
            return write.encode_text(topic, line.decode())
        except UnicodeDecodeError as error:
            raise BadLine(f"it is not UTF-8, which a value with a schema has to be: {line[:80]!r}") from error
        except BadValue as error:
            raise BadLine(f"it does not fit the schema: {error}: {line[:80]!r}") from error

    return encode


def _serializer(target: Target, registry: SchemaRegistry, given: str, *, is_key: bool) -> SchemaSerializer:
    named, _, message = given.partition("#")
    how: dict[str, Any] = {"is_key": is_key, **_options(target)}
    kind = KINDS.get(Path(named).suffix)
    if kind is not None:
        how["schema"] = _text_of(Path(named))
    elif named.isascii() and named.isdigit() and len(named) < 11:
        how["use_schema_id"] = int(named)
        kind = registry.schema(int(named)).kind
    elif named:
        latest = registry.latest(named)
        how["use_schema_id"], kind = latest.id, latest.schema.kind
    else:
        raise CliError(Exit.USAGE, "a schema is a file (.avsc, .json, .proto), an id, or a subject of the registry")
    if message and kind is not Kind.PROTOBUF:
        raise CliError(Exit.USAGE, f"{given}: only a Protobuf schema has messages to choose by #MESSAGE")
    if message:
        how["message_name"] = message
    made: SchemaSerializer = SERIALIZERS[kind](registry, **how)
    return made


def _text_of(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(MAX_SCHEMA_BYTES + 1)
    if len(data) > MAX_SCHEMA_BYTES:
        raise CliError(Exit.USAGE, f"{path} is longer than {MAX_SCHEMA_BYTES} bytes: is it a schema?")
    try:
        return data.decode().strip()
    except UnicodeDecodeError as error:
        raise CliError(Exit.DATA_INVALID, f"{path} is no text: {error}") from error


def _options(target: Target) -> dict[str, Any]:
    """Of a serializer, under its own names. Raises CliError."""
    found: dict[str, Any] = {}
    for name in OF_SERIALIZERS:
        if name not in target.registry:
            continue
        value = str(target.registry[name])
        if name == "subject_name_strategy":
            found[name] = value
        elif value.lower() in ("true", "false"):
            found[name] = value.lower() == "true"
        else:
            raise CliError(Exit.USAGE, f"-X {name.replace('_', '.')}={value}: it is true or false")
    return found
