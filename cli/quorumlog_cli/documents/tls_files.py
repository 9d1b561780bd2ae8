"""What `tls` prints."""

from __future__ import annotations

from typing import Annotated, TypedDict


class Certificate(TypedDict):
    file: str
    subject: str
    hosts: list[str]
    node_id: int | None
    cluster_id: str | None
    issuer: str
    not_before: str
    not_after: str
    days_left: int
    sha256: str


class CertificatesShown(TypedDict):
    certificates: list[Certificate]


class CertificatesIssued(CertificatesShown):
    folder: str
    cluster_id: str


class CertificatesRenewed(CertificatesShown):
    folder: str
    step: Annotated[int | None, "of the three by which the authority is renewed"]


class TriedCertificate(TypedDict):
    name: str
    host: str | None
    problem: str | None
    not_after: str
    ends_soon: bool


class CertificatesTried(TypedDict):
    certificates: list[TriedCertificate]


class KeystoreImported(TypedDict):
    file: str
    has_key: bool
    certificates: int


class Revoked(TypedDict):
    sha256: str
    name: str
    file: Annotated[str, "the list of revoked certificates"]
