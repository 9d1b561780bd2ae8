"""SCRAM credentials of users, as an image of the metadata has them."""

from __future__ import annotations

from collections.abc import Iterator

from quorumlog.messages.metadata_records import UserScramCredentialRecord
from quorumlog.security.sasl.credential import ScramCredential
from quorumlog.security.sasl.scram_mechanism import ScramMechanism
from quorumlog_quorum.metadata.access import CREDENTIAL, Access


def find_credential(access: Access, mechanism: ScramMechanism, name: str) -> ScramCredential | None:
    found = access.get((CREDENTIAL, name, int(mechanism)))
    if not isinstance(found, UserScramCredentialRecord):
        return None
    return ScramCredential(
        salt=found.salt, stored_key=found.stored_key, server_key=found.server_key, iterations=found.iterations
    )


def credential_record(name: str, mechanism: ScramMechanism, credential: ScramCredential) -> UserScramCredentialRecord:
    return UserScramCredentialRecord(
        name=name,
        mechanism=int(mechanism),
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )


def user_names(access: Access) -> Iterator[str]:
    """A user with two credentials comes twice."""
    for entry in access.values():
        if isinstance(entry, UserScramCredentialRecord):
            yield entry.name
