"""Every function that makes values from bytes of a disk or of another node, and how to call it with any bytes.

A parser is found from the code (`found_parsers`): a public function or method of the packages below whose name says
that it reads, and that takes bytes. It must stand in `PARSERS`, or in `ELSEWHERE` with what exercises it.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from struct import Struct
from typing import Any
from zlib import crc32

from joserfc import jwt
from joserfc.jwk import ECKey

from quorumlog.client.looking.json_text import NotJson, read_json
from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.brokers import DescribeAclsRequest
from quorumlog.messages.metadata_records import FeatureLevelRecord, PartitionRecord, TopicRecord
from quorumlog.proof.call_proof import read_proof
from quorumlog.proof.peer import Peer
from quorumlog.records import (
    BatchHeader,
    Codec,
    CorruptRecords,
    Record,
    decode_batch,
    decode_fields,
    encode_batch,
    headers,
    iter_batch,
    iter_headers,
    parse_header,
    validate_produced,
    verify_crc,
)
from quorumlog.records.control import (
    EndTxnMarker,
    KRaftVersion,
    LeaderChange,
    SnapshotFooter,
    SnapshotHeader,
    Voter,
    VoterEndpoint,
    Voters,
    control_batch,
    decode_control,
    encode_control,
)
from quorumlog.records.coordinator import (
    GROUP_TYPES,
    TRANSACTION_TYPES,
    CoordinatorRecord,
    Types,
    UnknownType,
    decode,
    encode_key,
)
from quorumlog.records.coordinator.offset_bytes import read_value, write_value
from quorumlog.records.coordinator.offsets import (
    GROUP_METADATA,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitValue,
)
from quorumlog.records.format.compression import BadCompression, compress, decompress, decompressed_pieces
from quorumlog.records.format.record import read_record
from quorumlog.records.format.varint import Malformed, read_uvarint, read_varint
from quorumlog.records.validation.record_check import check_records, look_at_once
from quorumlog.schemas.asking import by_id, read_answer, registered_of, schema_of
from quorumlog.schemas.errors import BadData, BadFrame, BadSchema, RegistryRefused, RegistryUnavailable
from quorumlog.schemas.formats.avro import AvroCodec
from quorumlog.schemas.formats.json_schema import JsonCodec
from quorumlog.schemas.formats.protobuf import ProtobufCodec
from quorumlog.schemas.framing import prefix, read_frame, read_id, read_indexes, write_indexes
from quorumlog.schemas.schema import Kind, Schema
from quorumlog.security.acl.content import AclContent, check_filter, matches, only_match
from quorumlog.security.sasl.jaas import JaasError, Module, read_jaas, write_jaas
from quorumlog.security.sasl.jwks import BadJwks, Jwks, read_jwks
from quorumlog.security.sasl.mechanism import LoginError, ServerMechanism
from quorumlog.security.sasl.oauth_message import BadMessage as OauthBadMessage
from quorumlog.security.sasl.oauth_message import read_token_message
from quorumlog.security.sasl.oauth_server import OauthServer
from quorumlog.security.sasl.plain import BadPlain, PlainCache, PlainServer, read_plain
from quorumlog.security.sasl.scram_client import read_server_final, read_server_first
from quorumlog.security.sasl.scram_format import read_scram_argument
from quorumlog.security.sasl.scram_server import ScramServer, read_client_final, read_client_first
from quorumlog.security.sasl.scram_text import BadMessage as ScramBadMessage
from quorumlog.security.sasl.scram_text import to_base64
from quorumlog.security.sasl.session import (
    API_VERSIONS_KEY,
    AUTHENTICATE_KEY,
    HANDSHAKE_KEY,
    Now,
    Pass,
    Reply,
    SaslSession,
    SessionRules,
    State,
)
from quorumlog.security.sasl.token import BadToken, Claims, TokenRules, UnknownKey, read_token
from quorumlog.security.sasl.token_request import read_token_answer, read_token_file
from quorumlog.security.secret import Secret
from quorumlog.security.tls.der import BadDer, read_elements, read_oid, read_one
from quorumlog.security.tls.distinguished_name import read_name
from quorumlog.security.tls.errors import BadTls
from quorumlog.security.tls.mapping import BadRules, parse_rules
from quorumlog.security.tls.peer import node_of, read_hosts, read_issuer, read_subject, read_validity_ms
from quorumlog.security.tls.pem import Block, read_blocks
from quorumlog.slices import Pace, at_once
from quorumlog.wire.protocol.sasl import external, read_external
from quorumlog_quorum.disk.metadata_log import checked_spans
from quorumlog_quorum.metadata.features import LATEST_LEVEL
from quorumlog_quorum.metadata.frame import BadRecord, ReplayError, decode_record, encode_record
from quorumlog_quorum.metadata.partition_values import PARTITION_HEADER, PartitionReader
from quorumlog_quorum.metadata.unsupported import UnsupportedMetadata
from quorumlog_quorum.offline.lost_majority import INTENT_NAME, Intent, RecoveryRefused, read_intent
from quorumlog_quorum.raft.quorum_state import CorruptQuorumState, QuorumState, decode_quorum_state, encode_quorum_state
from quorumlog_quorum.raft.voters import VoterKey
from quorumlog_quorum.snapshots.codec import SnapshotCheck, SnapshotEncoder, SnapshotHeading, values_of
from quorumlog_storage.audit.batches import read_batch_at, read_batches
from quorumlog_storage.audit.entries import (
    OFFSET_ENTRY,
    TIME_ENTRY,
    TRANSACTION_ENTRY,
    BadSnapshot,
    read_entries,
    read_snapshot,
)
from quorumlog_storage.cleaning.record_table import RecordTable
from quorumlog_storage.directory.directory import CleanShutdown, LockedDirectory
from quorumlog_storage.directory.mark import PromotionMark, parse_mark, render_mark
from quorumlog_storage.directory.meta_properties import META_PROPERTIES, MetaProperties
from quorumlog_storage.directory.offset_files import parse_offsets, render_offsets
from quorumlog_storage.directory.partition_metadata import (
    BadPartitionMetadata,
    parse_partition_metadata,
    render_partition_metadata,
)
from quorumlog_storage.files.properties import BadProperties, parse_properties, render_properties
from quorumlog_storage.files.text_checkpoint import CorruptCheckpoint, parse_checkpoint
from quorumlog_storage.foreign.kafka_metadata import _Settings
from quorumlog_storage.producers.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from quorumlog_storage.producers.producer_state import ProducerEntry, Remembered
from quorumlog_storage.rules.epochs import EpochStart, LeaderEpochCache
from quorumlog_storage.rules.fetch_rule import SnapshotId
from quorumlog_storage.segment.batch import received_batches
from quorumlog_storage.segment.index_file import CorruptIndex
from quorumlog_storage.segment.offset_index import OffsetIndex
from quorumlog_storage.segment.time_index import TimeEntries
from quorumlog_storage.segment.transaction_index import (
    AbortedTransaction,
    CorruptTransactionIndex,
    decode_entries,
    encode_entries,
)
from tests.parsers.damage import with_batch_crcs, with_entry_crc, with_snapshot_crc
from tests.parsers.one_file import OneFile
from tests.records.coordinator_samples import GROUP_SAMPLES, JOINT_SAMPLES, TRANSACTION_SAMPLES

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "storage", "quorum", "quorumlog/records", "quorumlog/wire", "quorumlog/messages", "quorumlog/proof",
    "quorumlog/security", "quorumlog/client/looking", "quorumlog/schemas",
)  # fmt: skip
READS = re.compile(
    r"(parse|decode|read|decompress|headers$|iter_|validate|check|look_at|verify|received|values_of|take$)"
)
BYTES = re.compile(r"\b(bytes|Buffer|memoryview|Cursor|File)\b")
LIMIT_BYTES = 8 * 1024  # of decompressed records

Call = Callable[[bytes], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parser:
    """call: any bytes in, a value out, or one of `errors`. again: the bytes that stand for a value.

    mend: makes checksums right, so that damage gets behind them. covers: parsers that `call` goes through.
    """

    call: Call
    seeds: tuple[bytes, ...]
    errors: tuple[type[Exception], ...]
    again: Callable[[Any], bytes] | None = None
    mend: Callable[[bytes], bytes] = bytes
    covers: tuple[str, ...] = field(default=())


# --- seeds ---

MS = 1_700_000_000_000
ROWS = [
    Record(n, MS + n, b"k" * (n % 3) or None, b"value %d" % n, (("h", b"1"), ("i", None))[: n % 3]) for n in range(6)
]
BATCHES = tuple(
    encode_batch(ROWS, codec=codec, leader_epoch=3, producer_id=7, producer_epoch=0, base_sequence=0) for codec in Codec
)
GAPS = encode_batch([ROWS[1], ROWS[4]], leader_epoch=2, last_offset_delta=7, delete_horizon_ms=MS)
EMPTY = encode_batch([], last_offset_delta=4, producer_id=7, producer_epoch=1, base_sequence=9)
VOTERS = Voters((Voter(1, bytes(range(16)), (VoterEndpoint("C", "h1", 9093),), 0, 1),))
CONTROLS = (EndTxnMarker(True, 3), EndTxnMarker(False, 4), LeaderChange(1, (1, 2, 3), (1, 2)), SnapshotHeader(MS),
            SnapshotFooter(), KRaftVersion(1), VOTERS)  # fmt: skip
CONTROL_BATCHES = tuple(control_batch([one], base_offset=0, timestamp_ms=MS, leader_epoch=3) for one in CONTROLS)
SNAPSHOT_ID = SnapshotId(9, 3)
METADATA = tuple(
    encode_record(record, LATEST_LEVEL)
    for record in (
        FeatureLevelRecord(name="metadata.version", level=3), TopicRecord(name="t", topic_id=bytes([5]) * 16),
        PartitionRecord(
            topic_id=bytes([5]) * 16, partition=0, replicas=(1, 2, 3), isr=(1, 2), leader=1, leader_epoch=4,
            partition_epoch=5,
        ),
    )
)  # fmt: skip


def _snapshot() -> bytes:
    encoder = SnapshotEncoder(SnapshotHeading(id=SNAPSHOT_ID, last_contained_timestamp_ms=MS, kraft_version=1))
    return encoder.begin() + encoder.values(METADATA) + encoder.end()


def _index() -> bytes:
    index = OffsetIndex()
    for number in range(1, 20):
        index.append(number * 3, number * 100)
    return index.encode()


ENTRIES = {
    7: ProducerEntry(1, (Remembered(4, 9, 2, MS), Remembered(6, 11, 1, MS)), MS),
    8: ProducerEntry(0, (), MS, coordinator_epoch=3),
}
OFFSET_VALUES = (
    OffsetCommitValue(7, "", MS), OffsetCommitValue(7, "metadata", MS, leader_epoch=3, topic_id=bytes([5]) * 16),
    OffsetCommitValue(7, "m" * 200, MS), OffsetCommitValue(7, "m", MS, expire_timestamp=MS + 5),
    OffsetCommitValue(7, "m", MS, expire_timestamp=MS + 5, topic_id=bytes(15) + b"\1"),
)  # fmt: skip
META = MetaProperties("cluster", 1, bytes([4]) * 16)
STATE = QuorumState(epoch=5, leader_id=2, voted=VoterKey(3, bytes([6]) * 16))
INTENT = Intent(incarnation=ClusterIncarnation(1, bytes([7]) * 16), end_offset=10, last_epoch=3, epoch=4)
LINES = render_offsets({("t", 0): 5, ("with-dash", 12): 2**40})
EPOCHS = LeaderEpochCache([EpochStart(1, 0), EpochStart(4, 90)]).render()


KAFKAS_TOPIC = bytes.fromhex("01020004666f6f000102030405060708090a0b0c0d0e0f00")  # a TopicRecord
KAFKAS = encode_batch([Record(0, MS, None, KAFKAS_TOPIC), Record(1, MS, None, b"\1z\0")])
TIMES = b"".join(Struct(">qi").pack(MS + n, n * 3) for n in range(1, 9))
ABORTED = encode_entries([AbortedTransaction(7, 1, 4, 5), AbortedTransaction(8, 5, 9, 10)])


def _old(magic: int, value: bytes, codec: Codec = Codec.NONE, offset: int = 3) -> bytes:
    """An entry of format 0 or 1."""
    time = Struct(">q").pack(MS) if magic else b""
    rest = bytes([magic, codec]) + time + Struct(">i").pack(-1) + Struct(">i").pack(len(value)) + value
    return Struct(">qiI").pack(offset, 4 + len(rest), crc32(rest)) + rest


OLD = (
    _old(0, b"v"), _old(1, b"w"), _old(1, bytes(compress(Codec.GZIP, _old(1, b"x", offset=0))), Codec.GZIP),
    _old(0, bytes(compress(Codec.SNAPPY, _old(0, b"y"))), Codec.SNAPPY),
)  # fmt: skip


ISSUER_KEY = ECKey.import_key(
    {"kty": "EC", "crv": "P-256", "kid": "k", "x": "WKn-ZIGevcwGIyyrzFoZNBdaq9_TsqzGl96oc0CWuis",
     "y": "y77t-RvAHRKTsSGdIYUfweuOvwrvDD-Q3Hv5J0fSKbE", "d": "Hndv7ZZjs_ke8o9zXYo3iq-Yr8SewI5vrqd0pAvEPqg"}
)  # fmt: skip
TOKEN = jwt.encode(
    {"alg": "ES256", "kid": "k"}, {"iss": "i", "aud": ["a"], "sub": "ada", "iat": MS // 1000, "exp": MS // 1000 + 60},
    ISSUER_KEY, algorithms=["ES256"],
)  # fmt: skip
JWKS = tuple(json.dumps({"keys": keys}).encode() for keys in (
    [ISSUER_KEY.as_dict(private=False)],
    [{"kty": "oct", "k": "AA"}, dict(ISSUER_KEY.as_dict(private=False), use="sig")],
))  # fmt: skip
TOKEN_RULES = TokenRules(issuer="i", audiences=("a",))
JAAS = tuple(f"{module.class_name} required{options};".encode() for module, options in (
    (Module.SCRAM, ' username="ada" password="a\\"\\101b\xfc"'), (Module.PLAIN, " username=a.b /* c */ user_x='y'"),
    (Module.OAUTHBEARER, ' clientId = "i" // d\n extension_a="b"'),
))  # fmt: skip

# --- how to call ---


def _token(data: bytes) -> Claims:
    return read_token(Secret(data.decode("latin-1")), TOKEN_RULES, Jwks(JWKS[0], 0), MS)


def _each_batch(read: Callable[..., Any]) -> Call:
    """`read` of every batch that the bytes hold, one after the other, as its callers do. The value is how many."""

    def call(data: bytes) -> int:
        count = 0
        for header in iter_headers(data):
            read(data, header)
            count += 1
        return count

    return call


def _limited(read: Callable[..., Any]) -> Call:
    return _each_batch(lambda data, header: read(data, header, max_decompressed_bytes=LIMIT_BYTES))


def _decompressed(read: Callable[..., Any]) -> Call:
    """The first byte is the codec."""

    def call(data: bytes) -> bytes:
        found = read(data[0] % 8 if data else 0, data[1:], max(LIMIT_BYTES, len(data)))
        return bytes(found) if isinstance(found, bytes | memoryview) else b"".join(map(bytes, found))

    return call


def _record(data: bytes) -> Any:
    return read_record(data, 0, 5, MS)


def _control(data: bytes) -> Any:
    """A byte for the length of the key, the key, the value."""
    return decode_control(data[1 : 1 + data[0]], data[1 + data[0] :]) if data else decode_control(None, None)


def _control_bytes(record: Any) -> bytes:
    key, value = encode_control(record)
    return bytes([len(key)]) + key + (value or b"")


def _internal(types: Types) -> Call:
    """A byte for the length of the key, the key, the value; no value is a tombstone."""
    return lambda data: decode(types, data[1 : 1 + data[0]], data[1 + data[0] :] or None) if data else None


def _internal_bytes(types: Types) -> Callable[[Any], bytes]:
    def again(record: CoordinatorRecord | None) -> bytes:
        if record is None:
            return b""
        number = Struct(">h").pack(record.type)
        if isinstance(record.key, UnknownType):
            return b"\2" + number
        key = number + encode_key(record.key)[2:]
        value = b"" if record.version is None else types[record.type].value.encode(record.value, record.version)
        return bytes([len(key)]) + key + value

    return again


def _internal_seeds(types: Types, samples: list[tuple[Any, int, Any]]) -> tuple[bytes, ...]:
    again = _internal_bytes(types)
    numbers = [decode(types, encode_key(key), None).type for key, _, _ in samples]
    return tuple(again(CoordinatorRecord(n, *sample)) for n, sample in zip(numbers, samples, strict=True))


def _partition(data: bytes) -> Any:
    return PartitionReader().read(PARTITION_HEADER + data)


def _whole_snapshot(data: bytes) -> Any:
    check = SnapshotCheck(SNAPSHOT_ID)
    check.take(data)
    check.finish(len(data))
    return sum(1 for value in values_of(data) if decode_record(value))


def _marker(data: bytes) -> CleanShutdown | None:
    disk = OneFile({"/d/" + META_PROPERTIES: META.render(), "/d/.kafka_cleanshutdown": data})
    return LockedDirectory.open(disk, "/d").clean_shutdown


def _table(data: bytes, header: BatchHeader) -> int:
    table = RecordTable()
    table.read(data, header)
    return table.count


def _old_entry(data: bytes, header: BatchHeader) -> Any:
    verify_crc(data, header)
    return decode_batch(data, header, max_decompressed_bytes=LIMIT_BYTES)


def _intent(data: bytes) -> Any:
    return read_intent(OneFile({f"/d/{INTENT_NAME}": data}), "/d")


def _entries(data: bytes) -> Any:
    file = OneFile({"/f": data}).open("/f")
    forms = (OFFSET_ENTRY, TIME_ENTRY, TRANSACTION_ENTRY)
    return [sum(1 for _ in read_entries(file, len(data), form)) for form in forms]


def _audited(data: bytes) -> Any:
    file = OneFile({"/f": data}).open("/f")
    return sum(1 for _ in read_batches(file, len(data)))


def _one_audited(data: bytes) -> Any:
    return type(read_batch_at(OneFile({"/f": data}).open("/f"), len(data), 0)).__name__ if data else None


CLASSIC_GROUPS = (
    GroupMetadataValue("consumer", 3, None, None, (), MS),
    GroupMetadataValue(
        "consumer",
        4,
        "range",
        "m1",
        tuple(MemberMetadata(f"m{number}", "c", "/h", 45_000, b"said", b"mine", 60_000) for number in range(3)),
        MS,
    ),
)

EXTERNAL_NODE = Peer(
    cluster_id="c1", node_id=2, incarnation_id=bytes(range(16)), cluster_incarnation=ClusterIncarnation(2, bytes(16))
)
SEED_PEM = (ROOT / "tests" / "security" / "tls" / "seed.pem").read_bytes()
CERTIFICATE = read_blocks(SEED_PEM)[1].der
SUBJECT = next(part.whole for part in read_elements(next(read_elements(read_one(CERTIFICATE, 0x30))).content)
               if b"alice" in part.whole)  # fmt: skip


def _rules(data: bytes) -> Any:
    """The first line is the rules, the rest a name."""
    rules, _, name = data.decode("latin-1").partition("\n")
    return parse_rules(rules).name_of(name)


ACLS = tuple(
    AclContent(kind, name, pattern, principal, host, operation, permission)
    for kind, name, operation in ((2, "orders", 3), (2, "*", 2), (3, "g", 3), (4, "kafka-cluster", 12), (2, "ord", 4))
    for pattern in (3, 4)
    for principal, host, permission in (("User:ada", "*", 3), ("User:*", "10.0.0.1", 2))
)


def _acl_filter(data: bytes) -> Any:
    """Four numbers, and name, principal and host by lines, of which an empty one is absent. Which rules fit is compared
    with what Kafka's page says of filters, word by word."""
    kind, pattern, operation, permission = Struct(">bbbb").unpack(data[:4].ljust(4, b"\0"))
    name, principal, host = [text or None for text in (data[4:].decode("latin-1").split("\n", 2) + [""] * 3)[:3]]
    wanted = DescribeAclsRequest(
        resource_type_filter=kind, resource_name_filter=name, pattern_type_filter=pattern, principal_filter=principal,
        host_filter=host, operation=operation, permission_type=permission,
    )  # fmt: skip
    check_filter(wanted)
    found = [rule for rule in ACLS if matches(wanted, rule)]
    assert found == [rule for rule in ACLS if _fits(wanted, rule)]
    only = only_match(wanted)
    assert only is None or found == [rule for rule in ACLS if rule == only]
    return len(found)


def _fits(wanted: DescribeAclsRequest, rule: AclContent) -> bool:
    asked = (wanted.resource_type_filter, wanted.operation, wanted.permission_type)
    if any(one not in (1, own) for one, own in zip(asked, (rule[0], rule[5], rule[6]), strict=True)):
        return False
    texts = ((wanted.principal_filter, rule.principal), (wanted.host_filter, rule.host))
    if any(text is not None and text != own for text, own in texts):
        return False
    name, pattern = wanted.resource_name_filter, wanted.pattern_type_filter
    names = {rule.resource_name}
    if pattern in (3, 4) and pattern != rule.pattern_type:
        return False
    if pattern == 2 and rule.pattern_type == 3 and rule.resource_name == "*" and name is not None:
        return True
    if pattern == 2 and rule.pattern_type == 4 and name is not None:
        return name[: len(rule.resource_name)] in names
    return name is None or name in names


class _Nobody:
    """`Credentials` without a user."""

    def scram(self, mechanism: str, name: str) -> None:
        return None


MECHANISMS: dict[str, Callable[[], ServerMechanism]] = {
    "PLAIN": lambda: PlainServer(_Nobody(), PlainCache(bytes(32)), bytes(32)),
    "SCRAM-SHA-256": lambda: ScramServer("SCRAM-SHA-256", _Nobody(), "nonce", bytes(32)),
    "SCRAM-SHA-512": lambda: ScramServer("SCRAM-SHA-512", _Nobody(), "nonce", bytes(32)),
    "OAUTHBEARER": lambda: OauthServer(TokenRules(issuer="another", audiences=("a",)), Jwks(JWKS[1], 0), lambda: None),
}


def _login(data: bytes) -> int:
    """Each line is a frame: its first byte says what it is, the rest is its text. Whatever comes, nobody is in, and
    what has failed stays so. The value is how many frames were taken."""
    session, taken = SaslSession(SessionRules(mechanisms=MECHANISMS)), 0
    for line in data.split(b"\n", 20):
        kind, text, now = line[:1], line[1:], Now(taken, MS)
        key = {b"\0": HANDSHAKE_KEY, b"\1": AUTHENTICATE_KEY, b"\2": API_VERSIONS_KEY}.get(kind, 3)
        if session.expects_token:
            session.authenticate(text, now)
        elif session.judge(key, now) is Pass.SASL:
            if key == HANDSHAKE_KEY:
                session.handshake(text.decode("latin-1"), len(text) % 2, now)
            else:
                session.authenticate(text, now)
        elif session.judge(key, now) is Pass.VERSIONS:
            session.versions_answered(ErrorCode.NONE)
        taken += 1
        assert session.principal is None and not session.is_complete, "somebody got in"
        if session.state is State.FAILED:
            assert isinstance(session.judge(key, now), Reply), "it goes on after its end"
            break
    return taken


def _answer(data: bytes) -> Any:
    """Of a registry: a byte for the status, the content."""
    found = read_answer(by_id(1), 200 + (data[0] if data else 0), data[1:])
    return schema_of(found), registered_of(found)


AVRO = AvroCodec(Schema(json.dumps({"type": "record", "name": "R", "fields": [
    {"name": "next", "type": ["null", "R"]}, {"name": "many", "type": {"type": "map", "values": "string"}},
    {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]})))  # fmt: skip
FLAT = AvroCodec(Schema('{"type": "array", "items": {"type": "map", "values": ["null", "double", "bytes"]}}'))
MESSAGES = ProtobufCodec(Schema(
    'syntax = "proto3"; message A { message B { string s = 1; repeated A many = 2; map<string, int64> m = 3; }'
    ' B b = 1; }',
    Kind.PROTOBUF,
))  # fmt: skip
ANY_JSON = JsonCodec(Schema('{"properties": {"a": {"type": "integer"}}}', Kind.JSON))


def _avro(data: bytes) -> Any:
    """A byte says which schema; the value, and the same as text."""
    codec = AVRO if data[:1] == b"\0" else FLAT
    return codec.decode(data[1:]), codec.text(data[1:])


PARSERS: dict[str, Parser] = {
    "quorumlog/schemas/framing.py read_frame": Parser(
        call=read_frame, errors=(BadFrame,), seeds=(prefix(7) + b"value", prefix(0) + write_indexes((1, 300))),
        again=lambda frame: prefix(frame.schema) + frame.rest,
    ),
    "quorumlog/schemas/framing.py read_id": Parser(
        call=read_id, errors=(BadFrame,), seeds=(prefix(7), b"\1" + bytes(range(16)) + b"\0"),
        again=lambda frame: (
            prefix(frame.schema) if isinstance(frame.schema, int) else b"\1" + frame.schema
        ) + frame.rest,
    ),
    "quorumlog/schemas/framing.py read_indexes": Parser(
        call=read_indexes, errors=(BadFrame,), seeds=(b"\0m", write_indexes((1, 0, 70_000)) + b"m"),
        again=lambda found: write_indexes(found[0]) + found[1],
    ),
    "quorumlog/schemas/asking.py read_answer": Parser(
        call=_answer, errors=(BadSchema, RegistryRefused, RegistryUnavailable),
        seeds=(
            b'\0{"subject": "s", "version": 1, "id": 7, "schema": "{}", "schemaType": "JSON", "references": []}',
            b'\xcc{"error_code": 40403, "message": "no"}', b"\x66<html>",
            b'\0{"schema": "{}", "references": [{"name": "a", "subject": "b", "version": 3}],'
            b' "subject": "s", "version": 2, "id": 9}',
        ),
    ),
    "quorumlog/schemas/formats/avro.py AvroCodec.decode": Parser(
        call=_avro, errors=(BadData,),
        seeds=(
            b"\0" + AVRO.from_text('{"next": {"R": {"next": null, "many": {}, "d": "", "at": 5}}, "many": {"a": "b"},'
                                   ' "d": "\\u0001", "at": 1}'),
            b"\1" + FLAT.from_text('[{"a": {"double": 1.5}, "b": null, "c": {"bytes": "\\u00ff"}}, {}]'),
        ),
    ),
    "quorumlog/schemas/formats/protobuf.py ProtobufCodec.decode": Parser(
        call=lambda data: (MESSAGES.decode(data), MESSAGES.text(data)), errors=(BadData,),
        seeds=(MESSAGES.from_text('{"b": {"s": "x", "many": [{}, {"b": {}}], "m": {"k": "5"}}}'), b"\4\0\0\x0a\1x"),
    ),
    "quorumlog/schemas/formats/json_schema.py JsonCodec.decode": Parser(
        call=lambda data: (ANY_JSON.decode(data), ANY_JSON.text(data)), errors=(BadData,),
        seeds=(b'{"a": 1, "b": [null, 1.5e3, "\\ud800"]}', b'"x"'),
    ),
    "quorumlog/security/acl/content.py check_filter": Parser(
        call=_acl_filter, errors=(ApiError,),
        seeds=(b"\2\3\3\3orders\nUser:ada\n*", b"\1\2\1\1orders\n\n", b"\2\1\1\1\n\n10.0.0.1", b"\2\4\1\1ord\n\n"),
    ),
    "quorumlog/security/sasl/session.py SaslSession.judge": Parser(
        call=_login, errors=(),
        seeds=(
            b"\2\n\0PLAIN\n\1\0ada\0pencil", b"\0SCRAM-SHA-256\n\1n,,n=ada,r=abc\n\1c=biws,r=abcnonce,p=AAAA",
            b"\0OAUTHBEARER\n\1n,,\x01auth=Bearer " + TOKEN.encode() + b"\x01\x01\n\1\1",
        ),
    ),
    "quorumlog/wire/protocol/sasl.py read_external": Parser(
        call=lambda data: read_external(data)[1],
        seeds=(external(EXTERNAL_NODE), external(replace(EXTERNAL_NODE, cluster_incarnation=FIRST)), b"node="),
        errors=(),
        again=lambda peer: b"" if peer is None else external(peer),
    ),
    "quorumlog/security/tls/pem.py read_blocks": Parser(
        call=read_blocks, seeds=(SEED_PEM, SEED_PEM.replace(b"\n", b" "), b""), errors=(BadTls,),
        again=lambda blocks: b"".join(map(Block.text, blocks)),
    ),
    "quorumlog/security/tls/der.py read_elements": Parser(
        call=lambda data: sum(len(one.content) for one in read_elements(data)), seeds=(CERTIFICATE, SUBJECT),
        errors=(BadDer,), covers=("quorumlog/security/tls/der.py read_one",),
    ),
    "quorumlog/security/tls/der.py read_oid": Parser(
        call=read_oid, seeds=(b"\x55\x04\x03", b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01"), errors=(BadDer,),
    ),
    "quorumlog/security/tls/distinguished_name.py read_name": Parser(
        call=read_name, seeds=(SUBJECT, b"\x30\0"), errors=(BadDer,),
    ),
    "quorumlog/security/tls/mapping.py parse_rules": Parser(
        call=_rules, seeds=(
            b"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L,DEFAULT\nCN=alice,OU=ServiceUsers,O=Org",
            b"RULE:^(CN|UID)=([a-z]*)\\/.*$/$2@$9\\/x/U , DEFAULT\nUID=ab/c", b"DEFAULT\nCN=a",
        ), errors=(BadRules,),
    ),
    "quorumlog/security/tls/peer.py read_subject": Parser(
        call=lambda data: (read_subject(data), read_issuer(data), node_of(data)), seeds=(CERTIFICATE,),
        errors=(BadDer,),
        covers=("quorumlog/security/tls/peer.py read_issuer",),
    ),
    "quorumlog/security/tls/peer.py read_hosts": Parser(
        call=read_hosts, seeds=(CERTIFICATE,), errors=(BadDer,),
        covers=("quorumlog/security/tls/peer.py read_alternative_names",),
    ),
    "quorumlog/security/tls/peer.py read_validity_ms": Parser(
        call=read_validity_ms, seeds=(CERTIFICATE,), errors=(BadDer,),
        covers=("quorumlog/security/tls/peer.py read_not_after_ms",),
    ),
    "quorumlog/records/coordinator/decode.py decode": Parser(
        call=_internal(GROUP_TYPES), seeds=_internal_seeds(GROUP_TYPES, GROUP_SAMPLES), errors=(CorruptRecords,),
        again=_internal_bytes(GROUP_TYPES),
    ),
    "quorumlog/records/coordinator/layout.py Layout.decode": Parser(
        call=_internal(TRANSACTION_TYPES),
        seeds=_internal_seeds(TRANSACTION_TYPES, [*TRANSACTION_SAMPLES, *JOINT_SAMPLES]),
        errors=(CorruptRecords,), again=_internal_bytes(TRANSACTION_TYPES),
    ),
    "quorumlog/records/coordinator/layout.py Layout.decode_sliced": Parser(
        call=lambda data: at_once(GROUP_METADATA.decode_sliced(data, Pace())),
        seeds=tuple(GROUP_METADATA.encode(value, version) for value in CLASSIC_GROUPS for version in (2, 3, 4)),
        errors=(CorruptRecords,), again=lambda value: GROUP_METADATA.encode(value, 4),
    ),
    "quorumlog/records/coordinator/offset_bytes.py read_value": Parser(
        call=read_value, seeds=tuple(map(write_value, OFFSET_VALUES)), errors=(CorruptRecords,), again=write_value,
    ),
    "storage/quorumlog_storage/rules/epochs.py LeaderEpochCache.parse": Parser(
        call=lambda data: LeaderEpochCache.parse("/e", data).entries, seeds=(EPOCHS, b"0\n0\n", b""),
        errors=(CorruptCheckpoint,), again=lambda entries: LeaderEpochCache(entries).render(),
    ),
    "storage/quorumlog_storage/files/text_checkpoint.py parse_checkpoint": Parser(
        call=lambda data: sum(map(len, parse_checkpoint("/c", data))),
        seeds=(EPOCHS, LINES),
        errors=(CorruptCheckpoint,),
    ),
    "storage/quorumlog_storage/directory/offset_files.py parse_offsets": Parser(
        call=lambda data: parse_offsets("/o", data), seeds=(LINES, b"0\n"), errors=(CorruptCheckpoint,),
        again=render_offsets,
    ),
    "storage/quorumlog_storage/directory/mark.py parse_mark": Parser(
        call=lambda data: parse_mark("/m", data), seeds=(render_mark(PromotionMark("t.x", 3, bytes(range(16)), 77)),),
        errors=(CorruptCheckpoint,), again=render_mark,
    ),
    "storage/quorumlog_storage/segment/offset_index.py OffsetIndex.decode": Parser(
        call=lambda data: OffsetIndex.decode(data, 1 << 30)._columns, seeds=(_index(), b""), errors=(CorruptIndex,),
    ),
    "storage/quorumlog_storage/segment/time_index.py TimeEntries.decode": Parser(
        call=lambda data: TimeEntries.decode(data)._columns, seeds=(TIMES, b""), errors=(CorruptIndex,),
    ),
    "storage/quorumlog_storage/segment/transaction_index.py decode_entries": Parser(
        call=decode_entries, seeds=(ABORTED, b""), errors=(CorruptTransactionIndex,), again=encode_entries,
    ),
    "storage/quorumlog_storage/cleaning/record_table.py RecordTable.read": Parser(
        call=_each_batch(_table), seeds=(*BATCHES, GAPS, EMPTY), errors=(CorruptRecords,),
    ),
    "storage/quorumlog_storage/producers/producer_snapshot.py decode_snapshot": Parser(
        call=lambda data: decode_snapshot("/s", data), seeds=(encode_snapshot(ENTRIES), encode_snapshot({})),
        errors=(CorruptSnapshot,), mend=with_snapshot_crc,
    ),
    "storage/quorumlog_storage/audit/entries.py read_snapshot": Parser(
        call=read_snapshot, seeds=(encode_snapshot(ENTRIES), encode_snapshot({})), errors=(BadSnapshot,),
        mend=with_snapshot_crc,
    ),
    "storage/quorumlog_storage/audit/entries.py read_entries": Parser(
        call=_entries, seeds=(_index(), b"\0" * 170), errors=(),
    ),
    "storage/quorumlog_storage/audit/batches.py read_batches": Parser(
        call=_audited, seeds=(*BATCHES, BATCHES[0] + GAPS + EMPTY), errors=(), mend=with_batch_crcs,
    ),
    "storage/quorumlog_storage/audit/batches.py read_batch_at": Parser(
        call=_one_audited, seeds=(*BATCHES, BATCHES[0] + GAPS + EMPTY), errors=(), mend=with_batch_crcs,
    ),
    "storage/quorumlog_storage/foreign/kafka_metadata.py _Settings.take": Parser(
        call=lambda data: _Settings().take(data, 0), seeds=(KAFKAS,), errors=(), mend=with_batch_crcs,
    ),
    "storage/quorumlog_storage/directory/partition_metadata.py parse_partition_metadata": Parser(
        call=lambda data: parse_partition_metadata("/p", data), seeds=(render_partition_metadata(bytes([5]) * 16),),
        errors=(BadPartitionMetadata,), again=render_partition_metadata,
    ),
    "storage/quorumlog_storage/files/properties.py parse_properties": Parser(
        call=lambda data: parse_properties("/m", data), seeds=(META.render("today"), b"a\\\n  b = c\\u00e9\\t\n"),
        errors=(BadProperties,), again=lambda found: render_properties(found),
    ),
    "storage/quorumlog_storage/directory/meta_properties.py MetaProperties.parse": Parser(
        call=lambda data: MetaProperties.parse("/m", data), seeds=(META.render("today"),), errors=(BadProperties,),
        again=lambda meta: meta.render(),
    ),
    "storage/quorumlog_storage/directory/directory.py LockedDirectory.open": Parser(
        call=_marker, seeds=(b'{"version":0,"brokerEpoch":12}', b""), errors=(),
    ),
    "storage/quorumlog_storage/segment/batch.py received_batches": Parser(
        call=received_batches, seeds=BATCHES, errors=(CorruptRecords,), mend=with_batch_crcs,
    ),
    "quorum/quorumlog_quorum/offline/lost_majority.py read_intent": Parser(
        call=_intent, seeds=(INTENT.render(),), errors=(RecoveryRefused,), again=lambda intent: intent.render(),
    ),
    "quorum/quorumlog_quorum/metadata/frame.py decode_record": Parser(
        call=decode_record, seeds=METADATA, errors=(BadRecord, UnsupportedMetadata),
        covers=("quorum/quorumlog_quorum/metadata/frame.py read_frame",),
    ),
    "quorum/quorumlog_quorum/metadata/partition_values.py PartitionReader.read": Parser(
        call=_partition, seeds=(METADATA[2][len(PARTITION_HEADER) :],),
        errors=(BadRecord, UnsupportedMetadata, ReplayError),
    ),
    "quorum/quorumlog_quorum/disk/metadata_log.py checked_spans": Parser(
        call=checked_spans, seeds=(*CONTROL_BATCHES, *BATCHES), errors=(), mend=with_batch_crcs,
    ),
    "quorum/quorumlog_quorum/raft/quorum_state.py decode_quorum_state": Parser(
        call=lambda data: decode_quorum_state("/q", data),
        seeds=(
            encode_quorum_state(STATE), encode_quorum_state(QuorumState()),
            b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"data_version":0}',
        ),
        errors=(CorruptQuorumState,), again=encode_quorum_state,
    ),
    "quorum/quorumlog_quorum/snapshots/codec.py SnapshotCheck.take": Parser(
        call=_whole_snapshot, seeds=(_snapshot(),), errors=(CorruptRecords, BadRecord, UnsupportedMetadata),
        mend=with_batch_crcs, covers=("quorum/quorumlog_quorum/snapshots/codec.py values_of",),
    ),
    "quorumlog/records/format/batch.py parse_header": Parser(
        call=parse_header, seeds=(*BATCHES, GAPS, EMPTY), errors=(CorruptRecords,),
    ),
    "quorumlog/records/format/batch.py headers": Parser(
        call=headers, seeds=(*BATCHES, GAPS + EMPTY), errors=(CorruptRecords,),
        covers=("quorumlog/records/format/batch.py iter_headers",),
    ),
    "quorumlog/records/format/batch.py verify_crc": Parser(
        call=_each_batch(verify_crc), seeds=BATCHES, errors=(CorruptRecords,), mend=with_batch_crcs,
    ),
    "quorumlog/records/rowwise/plain.py decode_batch": Parser(
        call=_limited(decode_batch), seeds=(*BATCHES, GAPS, EMPTY), errors=(CorruptRecords,),
    ),
    "quorumlog/records/rowwise/plain.py decode_fields": Parser(
        call=_limited(decode_fields), seeds=(*BATCHES, GAPS, EMPTY), errors=(CorruptRecords,),
    ),
    "quorumlog/records/rowwise/plain.py iter_batch": Parser(
        call=_limited(lambda *a, **k: sum(1 for _ in iter_batch(*a, **k))), seeds=(*BATCHES, GAPS, EMPTY),
        errors=(CorruptRecords,),
    ),
    "quorumlog/records/validation/produced.py validate_produced": Parser(
        call=lambda data: validate_produced(data, 1 << 20), seeds=BATCHES, errors=(ApiError, CorruptRecords),
        mend=with_batch_crcs,
    ),
    "quorumlog/records/validation/record_check.py check_records": Parser(
        call=_limited(lambda *a, **k: sum(1 for _ in check_records(*a, **k))), seeds=(*BATCHES, GAPS),
        errors=(ApiError, CorruptRecords),
    ),
    "quorumlog/records/validation/record_check.py look_at_once": Parser(
        call=_each_batch(look_at_once), seeds=BATCHES, errors=(CorruptRecords,),
    ),
    "quorumlog/records/format/compression.py decompress": Parser(
        call=_decompressed(decompress),
        seeds=tuple(bytes([codec]) + bytes(compress(codec, b"abcdef" * 40)) for codec in Codec),
        errors=(BadCompression,),
    ),
    "quorumlog/records/format/compression.py decompressed_pieces": Parser(
        call=_decompressed(decompressed_pieces),
        seeds=tuple(bytes([codec]) + bytes(compress(codec, b"abcdef" * 40)) for codec in Codec),
        errors=(BadCompression,),
    ),
    "quorumlog/records/control.py decode_control": Parser(
        call=_control, seeds=tuple(map(_control_bytes, CONTROLS)), errors=(CorruptRecords,),
        again=_control_bytes,
    ),
    "quorumlog/records/format/legacy.py decode_entry": Parser(
        call=_each_batch(_old_entry), seeds=OLD, errors=(CorruptRecords,), mend=with_entry_crc,
        covers=("quorumlog/records/format/legacy.py parse_entry", "quorumlog/records/format/legacy.py verify_entry"),
    ),
    "quorumlog/records/format/record.py read_record": Parser(
        call=_record, seeds=(BATCHES[0][61:], BATCHES[0][75:]), errors=(Malformed,),
    ),
    "quorumlog/records/format/varint.py read_varint": Parser(
        call=lambda data: read_varint(data, 0, len(data)), seeds=(b"\x02", b"\x80\x01", b"\xff" * 6),
        errors=(Malformed,),
    ),
    "quorumlog/records/format/varint.py read_uvarint": Parser(
        call=lambda data: read_uvarint(data, 0, len(data)), seeds=(b"\x02", b"\x80\x01", b"\xff" * 6),
        errors=(Malformed,),
    ),
    "quorumlog/client/looking/json_text.py read_json": Parser(
        call=read_json, seeds=(b'{"a": [1, 1e400, NaN, "\\u00e9", null], "a": {"b": -0.10}}', b"[]"), errors=(NotJson,)
    ),
    "quorumlog/proof/call_proof.py read_proof": Parser(call=read_proof, seeds=(b"\x01" * 60, b""), errors=()),
    "quorumlog/security/sasl/scram_server.py read_client_first": Parser(
        call=read_client_first, errors=(ScramBadMessage,),
        seeds=(b"n,,n=ada,r=rOprNGfwEbeRWgbNEkqO", b"y,a=a=2Cb,n=a=2Cb,r=x,tokenauth=true,y=1"),
        again=lambda first: f"{first.header}{first.bare}".encode(),
    ),
    "quorumlog/security/sasl/scram_server.py read_client_final": Parser(
        call=read_client_final, errors=(ScramBadMessage,),
        seeds=(b"c=biws,r=abc,p=AAAA", b"c=biws,r=abc,x=1,y=2,p=dHzbZapWIk4jUhN+Ute9yg=="),
        again=lambda final: f"{final.unproven},p={to_base64(final.proof)}".encode(),
    ),
    "quorumlog/security/sasl/scram_client.py read_server_first": Parser(
        call=read_server_first, errors=(ScramBadMessage,), again=lambda first: first.text.encode(),
        seeds=(b"r=abcdef,s=AAAA,i=4096", b"r=abcdef,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=16384,x=1"),
    ),
    "quorumlog/security/sasl/scram_client.py read_server_final": Parser(
        call=read_server_final, errors=(ScramBadMessage,), seeds=(b"v=AAAA", b"v=6rriTRBi23WpRR/wtup+mA==,x=1"),
        again=lambda signature: f"v={to_base64(signature)}".encode(),
    ),
    "quorumlog/security/sasl/plain.py read_plain": Parser(
        call=read_plain, errors=(BadPlain,), seeds=(b"\0ada\0pencil", b"ada\0ada\0a,b=c\xc3\xbc"),
        again=lambda told: f"\0{told[0]}\0{told[1].reveal()}".encode(),
    ),
    "quorumlog/security/sasl/oauth_message.py read_token_message": Parser(
        call=read_token_message, errors=(OauthBadMessage,),
        seeds=(b"n,,\x01auth=Bearer a.b.c\x01\x01", b"n,a=a=2Cb,\x01auth=bearer ab==\x01pool=1\x01host=x\x01\x01"),
    ),
    "quorumlog/security/sasl/jwks.py read_jwks": Parser(call=read_jwks, errors=(BadJwks,), seeds=JWKS),
    "quorumlog/security/sasl/token.py read_token": Parser(
        call=_token, errors=(BadToken, UnknownKey), seeds=(TOKEN.encode(), TOKEN.replace(".", "..").encode()),
    ),
    "quorumlog/security/sasl/token_request.py read_token_answer": Parser(
        call=lambda data: read_token_answer(200, data, MS), errors=(LoginError,),
        seeds=(b'{"access_token":"t","expires_in":20}', b'{"access_token":"%s"}' % TOKEN.encode()),
    ),
    "quorumlog/security/sasl/token_request.py read_token_file": Parser(
        call=read_token_file, errors=(LoginError,), seeds=(b" t\n", TOKEN.encode()),
    ),
    "quorumlog/security/sasl/jaas.py read_jaas": Parser(
        call=lambda data: read_jaas(data.decode("latin-1")), errors=(JaasError,), seeds=JAAS,
        again=lambda told: write_jaas(
            told.module, {name: value.reveal() for name, value in told.options.items()}
        ).encode("latin-1"),
    ),
    "quorumlog/security/sasl/scram_format.py read_scram_argument": Parser(
        call=lambda data: read_scram_argument(data.decode("latin-1")), errors=(ValueError,),
        seeds=(b"SCRAM-SHA-512=[name=ada,password=p]", b"SCRAM-SHA-256=[name=ada,password=@/f,iterations=8192]"),
    ),
}  # fmt: skip

LANE = "tests/wire/fuzz.py sends damaged frames of every API and version to a listener"
ANSWERS = "tests/wire/test_wire_schema.py and tests/wire/lane.py; a client trusts its cluster's answers"
ELSEWHERE: dict[str, str] = {
    "quorumlog/schemas/formats/codec.py Codec.decode": "the interface of the three codecs",
    "quorum/quorumlog_quorum/disk/metadata_log.py MetadataLog.read": "gives bytes of the log to a function",
    "storage/quorumlog_storage/edge/cleaner.py decode_spec": "a line that the node writes to its own cleaner",
    "storage/quorumlog_storage/foreign/export.py Export.take": "received_batches",
    "storage/quorumlog_storage/segment/index_file.py IndexFile.decode": "the interface of the next two",
    "storage/quorumlog_storage/segment/time_index.py TimeIndexFile.decode": "TimeEntries.decode",
    "storage/quorumlog_storage/segment/offset_index.py OffsetIndexFile.decode": "OffsetIndex.decode",
    "quorumlog/records/columnar/decode.py decode_columns": "tests/records/test_columnar_codec.py damages every byte",
    "quorumlog/records/format/compression.py _Room.take": "counts bytes",
    "quorumlog/records/validation/record_check.py _Walk.take": "check_records",
    "quorumlog/wire/protocol/codec.py decode_request": LANE,
    "quorumlog/wire/protocol/codec.py decode_request_sliced": LANE,
    "quorumlog/wire/protocol/codec.py read_whole": LANE,
    "quorumlog/wire/protocol/codec.py decode_response": ANSWERS,
    "quorumlog/wire/protocol/codec.py decode_response_values": ANSWERS,
    "quorumlog/wire/serving/connection_proof.py ConnectionProof.take": LANE,
    "quorumlog/wire/format/header.py read_fixed": LANE,
    "quorumlog/wire/format/header.py read_rest": LANE,
    "quorumlog/wire/format/header.py read_response_header": ANSWERS,
    "quorumlog/wire/fast/classic_groups.py read_heartbeat_request": LANE,
    "quorumlog/wire/fast/classic_groups.py read_heartbeat_response": ANSWERS,
    "quorumlog/wire/fast/classic_groups.py read_join_request": LANE,
    "quorumlog/wire/fast/classic_groups.py read_join_response": ANSWERS,
    "quorumlog/wire/fast/classic_groups.py read_sync_request": LANE,
    "quorumlog/wire/fast/classic_groups.py read_sync_response": ANSWERS,
    "quorumlog/wire/fast/consumer_heartbeat.py read_request": LANE,
    "quorumlog/wire/fast/consumer_heartbeat.py read_response": ANSWERS,
    "quorumlog/wire/fast/fetch.py read_request": LANE,
    "quorumlog/wire/fast/fetch.py read_response": ANSWERS,
    "quorumlog/wire/fast/offset_commit.py read_request": LANE,
    "quorumlog/wire/fast/offset_commit.py read_response": ANSWERS,
    "quorumlog/wire/fast/produce.py read_request": LANE,
    "quorumlog/wire/fast/produce.py read_response": ANSWERS,
    "quorumlog/wire/protocol/sasl.py read_request": LANE,
    "quorumlog/wire/protocol/sasl.py read_answer": ANSWERS,
    "quorumlog/wire/format/schema.py Shape.read": LANE,
    "quorumlog/wire/format/schema.py Shape.read_sliced": LANE,
    "quorumlog/wire/format/schema.py Elements.read": LANE,
    "quorumlog/wire/format/schema.py Elements.read_sliced": LANE,
    "quorumlog/wire/protocol/versions.py read_answer": ANSWERS,
    "quorumlog/proof/scram_client.py ScramClient.verify": "tests/proof/test_scram.py",
    "quorumlog/security/tls/issuing/keystores.py read_keystore": "an operator's own keystore, read by a library; "
    "tests/cli/test_tls_commands.py",
}


def found_parsers() -> Iterator[str]:
    """`file Class.function` of everything that must be in one of the two tables."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield from _parsers_in(path.relative_to(ROOT).as_posix(), ast.parse(path.read_text()), "")


def _parsers_in(file: str, node: ast.AST, owner: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _parsers_in(file, child, f"{child.name}.")
        elif isinstance(child, ast.FunctionDef) and READS.match(child.name):
            arguments = [*child.args.args, *child.args.kwonlyargs]
            types = [ast.unparse(one.annotation) for one in arguments if one.annotation is not None]
            if any(BYTES.search(kind) for kind in types):
                yield f"{file} {owner}{child.name}"
