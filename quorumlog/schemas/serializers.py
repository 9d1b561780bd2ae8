"""Serializers and deserializers for `key_serializer=`, `value_deserializer=`, ... of both client forms.

Each serializer is for keys or for values (`is_key`), as in Confluent's clients, since a subject is named after it. What
a registry tells is kept, so that a record costs no request once its schema is known.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quorumlog.client.errors import ConfigError
from quorumlog.client.plugins.serializers import HeaderList
from quorumlog.schemas.asking import show_guid
from quorumlog.schemas.cache import Cache
from quorumlog.schemas.errors import BadData, BadSchema, BadValue, SchemaError
from quorumlog.schemas.formats.codec import Codec, said
from quorumlog.schemas.framing import prefix, read_frame
from quorumlog.schemas.registry import SchemaRegistry
from quorumlog.schemas.schema import Kind, Reference, Schema
from quorumlog.schemas.subjects import NameOf, strategy

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from quorumlog.schemas.formats.avro import AvroCodec

Ready = tuple[int, Codec]
Convert = Callable[[Any], Any]
CODECS = 1_000  # compiled schemas that a deserializer keeps, and subjects of a serializer


def _origin(is_key: bool) -> str:
    return "key" if is_key else "value"


def _never() -> int:
    return 0  # entries of these caches have no end


class SchemaSerializer:
    """What the three have in common: which schema a record gets, and its id before the bytes.

    schema: None: that of the registry, with `use_latest_version` or `use_schema_id`. auto_register_schemas: a schema
    that the subject does not have is registered; otherwise it is an error. use_latest_version: whatever the subject's
    latest schema is, it is used, and `schema` is not; it follows a newer one after the registry's `latest_ttl_ms`.
    subject_name_strategy: a name of Confluent's, or f(topic, origin, name of the record) -> subject. convert: makes of
    an application's object what the format takes. Raises ConfigError for what does not go together.
    """

    kind: Kind

    def __init__(
        self,
        registry: SchemaRegistry,
        schema: Schema | None,
        *,
        is_key: bool = False,
        auto_register_schemas: bool = True,
        use_latest_version: bool = False,
        use_schema_id: int | None = None,
        normalize_schemas: bool = False,
        subject_name_strategy: str | NameOf = "TopicNameStrategy",
        convert: Convert | None = None,
    ) -> None:
        if use_latest_version and use_schema_id is not None:
            raise ConfigError("use_latest_version and use_schema_id name two schemas: remove one of both")
        if schema is None and use_schema_id is None and not use_latest_version:
            raise ConfigError("no schema: give one, or use_latest_version=True, or use_schema_id")
        self._registry, self._schema, self._origin = registry, schema, _origin(is_key)
        self._registers, self._latest, self._id = auto_register_schemas, use_latest_version, use_schema_id
        self._normalizes = normalize_schemas
        self._subject_of, self._convert = strategy(subject_name_strategy), convert
        self._needs_record = self._subject_of("t", self._origin, "x") != self._subject_of("t", self._origin, "y")
        self._codecs: Cache[Schema, Codec] = Cache(CODECS, _never)
        self._ready: Cache[tuple[str, Schema], Ready] = Cache(CODECS, _never)

    def serialize(self, topic: str, headers: HeaderList, data: Any) -> bytes | None:
        """Raises SchemaError."""
        if data is None:
            return None
        value = self._converted(data)
        schema_id, codec = self._of(topic)
        return prefix(schema_id) + codec.encode(value)

    def is_prepared(self, topic: str, headers: HeaderList, data: Any) -> bool:
        """`serialize` would neither ask the registry nor compile a schema. See `plugins.serializers.Prepares`."""
        if data is None:
            return True
        if self._id is not None:
            return self._has_codec(self._registry.known(self._id))
        schema = self._schema_if_known()
        if self._needs_record and not self._has_codec(schema):
            return False
        subject = self._subject(topic, schema)
        if self._latest:
            latest = self._registry.known_latest(subject)
            return latest is not None and self._has_codec(latest.schema)
        return schema is not None and self._ready.get((subject, schema)) is not None

    def _has_codec(self, schema: Schema | None) -> bool:
        return schema is not None and self._codecs.get(schema) is not None

    def schema_id(self, topic: str) -> int:
        """That of the topic's next record; the schema is registered if it has to be. Raises SchemaError."""
        return self._of(topic)[0]

    def encode_text(self, topic: str, text: str) -> bytes:
        """Of a line of JSON, in the format's own encoding. Raises SchemaError."""
        schema_id, codec = self._of(topic)
        return prefix(schema_id) + codec.from_text(text)

    def _converted(self, data: Any) -> Any:
        if self._convert is None:
            return data
        try:
            return self._convert(data)
        except Exception as error:  # whatever the application's code raises
            raise BadValue(f"the value cannot be converted: {said(error)}") from error

    def _of(self, topic: str) -> Ready:
        """The id and the codec for a record."""
        if self._id is not None:
            return self._id, self._codec(self._checked(self._registry.schema(self._id)))
        schema = self._schema_of()
        subject = self._subject(topic, schema)
        if self._latest:
            found = self._registry.latest(subject)
            return found.id, self._codec(self._checked(found.schema))
        assert schema is not None
        ready = self._ready.get((subject, schema))
        if ready is None:
            ready = self._registered(subject, schema), self._codec(schema)
            self._ready.put((subject, schema), ready)
        return ready

    def _subject(self, topic: str, schema: Schema | None) -> str:
        """Raises SchemaError for a strategy that needs a record's name, and there is none."""
        if not self._needs_record:
            return self._subject_of(topic, self._origin, "")
        name = self._codec(schema).name if schema is not None else ""
        if not name:
            raise SchemaError("the subject is named after the record, and no schema names one: give it, or its id")
        return self._subject_of(topic, self._origin, name)

    def _registered(self, subject: str, schema: Schema) -> int:
        registry, normalize = self._registry, self._normalizes
        if self._registers:
            return registry.register(subject, schema, normalize=normalize)
        return registry.lookup(subject, schema, normalize=normalize).id

    def _checked(self, schema: Schema) -> Schema:
        if schema.kind is not self.kind:
            raise BadSchema(f"the registry has a schema of {schema.kind}, and the serializer is for {self.kind}")
        return schema

    def _codec(self, schema: Schema) -> Codec:
        codec = self._codecs.get(schema)
        if codec is None:
            codec = self._made(schema)
            self._codecs.put(schema, codec)
        return codec

    def _schema_of(self) -> Schema | None:
        """Whole, with what it refers to. Raises SchemaError."""
        return self._schema

    def _schema_if_known(self) -> Schema | None:
        """As `_schema_of` where that asks nobody."""
        return self._schema

    def _made(self, schema: Schema) -> Codec:
        raise NotImplementedError


class AvroSerializer(SchemaSerializer):
    """schema: JSON. Values are what fastavro takes: dicts, numbers, `decimal`, `datetime`; (name, value) in unions."""

    kind = Kind.AVRO

    def __init__(
        self, registry: SchemaRegistry, schema: str | None = None, *, references: Sequence[Reference] = (), **how: Any
    ) -> None:
        given = None if schema is None else Schema(schema, Kind.AVRO, tuple(references))
        super().__init__(registry, given, **how)

    def _made(self, schema: Schema) -> Codec:
        from quorumlog.schemas.formats.avro import AvroCodec

        return AvroCodec(schema, self._registry.referenced(schema))


class JsonSerializer(SchemaSerializer):
    """schema: a JSON Schema. Values are what `json` writes. validate: False: they are not held against the schema."""

    kind = Kind.JSON

    def __init__(
        self,
        registry: SchemaRegistry,
        schema: str | None = None,
        *,
        references: Sequence[Reference] = (),
        validate: bool = True,
        **how: Any,
    ) -> None:
        self._validates = validate
        given = None if schema is None else Schema(schema, Kind.JSON, tuple(references))
        super().__init__(registry, given, **how)

    def _made(self, schema: Schema) -> Codec:
        from quorumlog.schemas.formats.json_schema import JsonCodec

        return JsonCodec(schema, self._registry.referenced(schema), validate=self._validates)


class ProtobufSerializer(SchemaSerializer):
    """message: the generated class. The file that it is of is its schema, and what that imports is registered under
    the files' names; what protobuf itself brings is not. message_name: of the message that text becomes, without a
    class."""

    kind = Kind.PROTOBUF

    def __init__(
        self,
        registry: SchemaRegistry,
        message: type[Message] | None = None,
        *,
        schema: str | None = None,
        references: Sequence[Reference] = (),
        message_name: str = "",
        **how: Any,
    ) -> None:
        self._message, self._message_name = message, message_name
        self._whole: Schema | None = None  # of the class's file, with what it imports
        given: Schema | None = None
        if message is not None:
            from quorumlog.schemas.formats.protobuf import schema_text

            given = Schema(schema_text(message.DESCRIPTOR.file), Kind.PROTOBUF)
        elif schema is not None:
            given = Schema(schema, Kind.PROTOBUF, tuple(references))
        self._lock = threading.Lock()
        super().__init__(registry, given, **how)

    def _schema_of(self) -> Schema | None:
        if self._message is None or self._schema is None:
            return self._schema
        with self._lock:
            if self._whole is None:
                self._whole = replace(self._schema, references=tuple(self._imported(self._message.DESCRIPTOR.file)))
            return self._whole

    def _schema_if_known(self) -> Schema | None:
        return self._schema if self._message is None else self._whole

    def _imported(self, file: Any) -> list[Reference]:
        """What the file, a descriptor, imports: as it is in the registry."""
        from quorumlog.schemas.formats.protobuf import imports_of, schema_text

        found: list[Reference] = []
        for one in imports_of(file):
            schema = Schema(schema_text(one), Kind.PROTOBUF, tuple(self._imported(one)))
            self._registered(one.name, schema)
            version = self._registry.lookup(one.name, schema, normalize=self._normalizes).version
            found.append(Reference(one.name, one.name, version))
        return found

    def _made(self, schema: Schema) -> Codec:
        from quorumlog.schemas.formats.protobuf import ProtobufCodec

        return ProtobufCodec(schema, self._registry.referenced(schema), self._message, self._message_name)


class SchemaDeserializer:
    """Values of any of the three formats: the schema that the bytes name says which.

    is_key: which header names the schema, where one does. validate: JSON is held against its schema. convert: makes an
    application's object of what was read. reader_schema: of Avro: what the application knows; what was written is
    resolved to it. message: of Protobuf: the generated class; None: one that is made of the schema.
    """

    kind: Kind | None = None

    def __init__(
        self,
        registry: SchemaRegistry,
        *,
        is_key: bool = False,
        validate: bool = True,
        reader_schema: str | None = None,
        references: Sequence[Reference] = (),
        message: type[Message] | None = None,
        convert: Convert | None = None,
    ) -> None:
        self._registry, self._origin, self._validates = registry, _origin(is_key), validate
        self._message, self._convert = message, convert
        self._reader_schema = None if reader_schema is None else Schema(reader_schema, Kind.AVRO, tuple(references))
        self._reader: AvroCodec | None = None
        self._codecs: Cache[int | bytes, Codec] = Cache(CODECS, _never)

    def deserialize(self, topic: str, headers: HeaderList, data: bytes) -> Any:
        """Raises SchemaError."""
        codec, rest = self._of(headers, data)
        value = codec.decode(rest)
        if self._convert is None:
            return value
        try:
            return self._convert(value)
        except Exception as error:  # whatever the application's code raises
            raise BadData(f"the value cannot be converted: {said(error)}") from error

    def text(self, headers: Sequence[tuple[str, bytes | None]], data: bytes) -> str:
        """One line of JSON, in the format's own encoding; `encode_text` takes it back. Raises SchemaError."""
        codec, rest = self._of(headers, data)
        return codec.text(rest)

    def is_prepared(self, topic: str, headers: HeaderList, data: bytes) -> bool:
        """`deserialize` would neither ask the registry nor compile a schema."""
        try:
            schema = read_frame(data, headers, self._origin).schema
        except SchemaError:
            return True  # it says so without asking
        return self._codecs.get(schema) is not None

    def _of(self, headers: Sequence[tuple[str, bytes | None]], data: bytes) -> tuple[Codec, bytes]:
        frame = read_frame(data, headers, self._origin)
        codec = self._codecs.get(frame.schema)
        if codec is None:
            try:
                codec = self._made(self._registry.schema(frame.schema))
            except BadSchema as error:
                shown = show_guid(frame.schema) if isinstance(frame.schema, bytes) else frame.schema
                raise BadSchema(f"schema {shown}: {error}") from error
            self._codecs.put(frame.schema, codec)
        return codec, frame.rest

    def _made(self, schema: Schema) -> Codec:
        if self.kind is not None and schema.kind is not self.kind:
            raise BadSchema(f"the bytes have a schema of {schema.kind}, and the deserializer is for {self.kind}")
        referenced = self._registry.referenced(schema)
        match schema.kind:
            case Kind.AVRO:
                from quorumlog.schemas.formats.avro import AvroCodec

                if self._reader is None and self._reader_schema is not None:
                    self._reader = AvroCodec(self._reader_schema, self._registry.referenced(self._reader_schema))
                return AvroCodec(schema, referenced, self._reader)
            case Kind.PROTOBUF:
                from quorumlog.schemas.formats.protobuf import ProtobufCodec

                return ProtobufCodec(schema, referenced, self._message)
            case Kind.JSON:
                from quorumlog.schemas.formats.json_schema import JsonCodec

                return JsonCodec(schema, referenced, validate=self._validates)


class AvroDeserializer(SchemaDeserializer):
    kind = Kind.AVRO


class ProtobufDeserializer(SchemaDeserializer):
    kind = Kind.PROTOBUF


class JsonDeserializer(SchemaDeserializer):
    kind = Kind.JSON
