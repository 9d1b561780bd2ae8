"""Access rules, SCRAM credentials, client quotas and delegation tokens in the metadata.

They are in log, image and snapshot from metadata.version 5 on, tokens from 6 on. No request writes tokens. Each entry
is the record that made it, by a key of its own; the record that takes an entry away is of another type, except for
quotas. Source: KIP-631; Kafka's AclControlManager, ScramControlManager, ClientQuotaControlManager and
DelegationTokenControlManager.
"""

from __future__ import annotations

from math import isfinite
from struct import pack

from immutables import Map

from quorumlog.ids import UUID_BYTES
from quorumlog.messages.common import QuotaEntity
from quorumlog.messages.metadata_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from quorumlog.security.acl.content import AclContent, content_of_rule
from quorumlog_quorum.metadata.canonical import Value, entry_hash
from quorumlog_quorum.metadata.frame import ReplayError

AccessEntry = AccessControlEntryRecord | UserScramCredentialRecord | ClientQuotaRecord | DelegationTokenRecord
AccessRemoval = RemoveAccessControlEntryRecord | RemoveUserScramCredentialRecord | RemoveDelegationTokenRecord
AccessRecord = AccessEntry | AccessRemoval
AccessKey = tuple[Value, ...]  # begins with the kind of entry; the keys of one kind can be sorted
Access = Map[AccessKey, AccessEntry]
NOTHING: Access = Map()
RuleIds = Map[AclContent, tuple[bytes, ...]]  # ascending; more than one only in a log that other software wrote

ACCESS_RECORDS = (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
    UserScramCredentialRecord,
    RemoveUserScramCredentialRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
)
# Snapshots have them in this order.
QUOTA, RULE, CREDENTIAL, TOKEN = "1 client quota", "2 access rule", "3 scram credential", "4 delegation token"


def key_of(record: AccessRecord) -> AccessKey:
    """The entry that the record makes, changes or takes away."""
    match record:
        case AccessControlEntryRecord() | RemoveAccessControlEntryRecord():
            return (RULE, record.id)
        case UserScramCredentialRecord() | RemoveUserScramCredentialRecord():
            return (CREDENTIAL, record.name, record.mechanism)
        case DelegationTokenRecord() | RemoveDelegationTokenRecord():
            return (TOKEN, record.token_id)
        case ClientQuotaRecord():
            return (QUOTA, tuple(sorted(_part(one) for one in record.entity)), record.key)


def replay_access(access: Access, record: AccessRecord) -> tuple[Access, int]:
    """The entries after the record, and what it adds to the sum of the entries' hashes. Raises ReplayError."""
    key = key_of(record)
    old = access.get(key)
    _check(record, old)
    gone = 0 if old is None else access_hash(old)
    if isinstance(record, AccessRemoval):
        return access.delete(key), -gone
    if isinstance(record, ClientQuotaRecord) and record.remove:
        return (access if old is None else access.delete(key)), -gone
    return access.set(key, record), access_hash(record) - gone


def replay_rule_ids(rule_ids: RuleIds, access: Access, record: AccessRecord) -> RuleIds:
    """access: before the record."""
    match record:
        case AccessControlEntryRecord():
            content = content_of_rule(record)
            return rule_ids.set(content, tuple(sorted((*rule_ids.get(content, ()), record.id))))
        case RemoveAccessControlEntryRecord():
            gone = access.get((RULE, record.id))
            assert isinstance(gone, AccessControlEntryRecord), "the record does not fit"
            content = content_of_rule(gone)
            left = tuple(one for one in rule_ids[content] if one != gone.id)
            return rule_ids.set(content, left) if left else rule_ids.delete(content)
    return rule_ids


def access_hash(entry: AccessEntry) -> int:
    return entry_hash(("access", *key_of(entry)), _value(entry))


def sorted_access(access: Access) -> list[AccessEntry]:
    """Quotas, rules, credentials, tokens; each kind by its keys."""
    return [access[key] for key in sorted(access)]


def _part(one: QuotaEntity) -> tuple[str, bool, str]:
    """entity_name absent: the default of its type, which is another entity than the one with the empty name."""
    return (one.entity_type, one.entity_name is None, one.entity_name or "")


def _value(entry: AccessEntry) -> Value:
    match entry:
        case AccessControlEntryRecord():
            return tuple(content_of_rule(entry))
        case UserScramCredentialRecord():
            return (entry.salt, entry.stored_key, entry.server_key, entry.iterations)
        case DelegationTokenRecord():
            times = (entry.issue_timestamp, entry.max_timestamp, entry.expiration_timestamp)
            return (entry.owner, entry.requester, entry.renewers, *times)
        case ClientQuotaRecord():
            return pack(">d", entry.value)


def _check(record: AccessRecord, old: AccessEntry | None) -> None:
    match record:
        case AccessControlEntryRecord():
            if old is not None or len(record.id) != UUID_BYTES:
                raise ReplayError(record, "the id of the rule is taken, or is no id")
        case RemoveAccessControlEntryRecord() | RemoveUserScramCredentialRecord() | RemoveDelegationTokenRecord():
            if old is None:
                raise ReplayError(record, "there is nothing to remove")
        case ClientQuotaRecord():
            types = [one.entity_type for one in record.entity]
            if not types or len(set(types)) < len(types):
                raise ReplayError(record, "a quota is of one or more entities of different types")
            if not record.remove and not isfinite(record.value):
                raise ReplayError(record, "a quota is a finite number")
        case DelegationTokenRecord():
            if not record.token_id or not record.issue_timestamp <= record.expiration_timestamp <= record.max_timestamp:
                raise ReplayError(record, "a token has an id, and expires between its issue and its last day")
        case UserScramCredentialRecord():
            pass
