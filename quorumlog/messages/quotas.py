"""Quotas of clients (KIP-546). Field by field these are Kafka's messages under our names, but DescribeQuotaUse.

The active controller changes them; every broker describes them from its own metadata.

Written by `./dev proto` from proto/quorumlog/v1/quotas.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.common import QuotaEntity
from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class DescribeClientQuotasRequest:
    """Entities that match all components. Without a component: all entities, or none if `strict`.

    strict: True: an entity that has other types than the components is left out.
    """

    components: tuple[QuotaComponent, ...] = ()
    strict: bool = False


@message(frozen=True, slots=True, kw_only=True)
class QuotaComponent:
    """entity_type: user, client-id, ip.
    match_type: 0: the name in `match`; 1: the default of the type; 2: any name and the default.
    """

    entity_type: str
    match_type: int
    match: str | None = None


@message(frozen=True, slots=True, kw_only=True)
class DescribeClientQuotasResponse:
    error_code: int = 0
    error_message: str = ""
    entries: tuple[DescribedQuota, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class DescribedQuota:
    entity: tuple[QuotaEntity, ...] = ()
    values: tuple[QuotaValue, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class QuotaValue:
    key: str
    value: float


@message(frozen=True, slots=True, kw_only=True)
class AlterClientQuotasRequest:
    """The changes of one entity are carried out together or not at all; each entity is refused alone."""

    entries: tuple[QuotaAlteration, ...] = ()
    validate_only: bool = False


@message(frozen=True, slots=True, kw_only=True)
class QuotaAlteration:
    entity: tuple[QuotaEntity, ...] = ()
    ops: tuple[QuotaOp, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class QuotaOp:
    """key: producer_byte_rate and so on; of an ip connection_creation_rate."""

    key: str
    value: float = 0.0
    remove: bool = False


@message(frozen=True, slots=True, kw_only=True)
class AlterClientQuotasResponse:
    error_code: int = 0
    error_message: str = ""
    entries: tuple[AlteredQuota, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class AlteredQuota:
    """error_code: INVALID_REQUEST, UNSUPPORTED_VERSION."""

    error_code: int = 0
    error_message: str = ""
    entity: tuple[QuotaEntity, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DescribeQuotaUseRequest:
    """Who uses most of its quota at this broker (not in Kafka). Each broker counts for itself."""

    max_results: int


@message(frozen=True, slots=True, kw_only=True)
class DescribeQuotaUseResponse:
    """uses: Those that use most of their quota first.
    exempt_percentage: What requests without a quota take of the loop, while some client has one.
    """

    error_code: int = 0
    error_message: str = ""
    uses: tuple[QuotaUse, ...] = ()
    exempt_percentage: float = 0.0


@message(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """Of those who share one quota, in the last eleven seconds.

    user: Absent: of all users, or of all client ids.
    rate: A second, in the unit of the key, as the quota is.
    throttled_ms: For how long its clients were held back since this broker has remembered them.
    """

    key: str
    user: str | None = None
    client_id: str | None = None
    rate: float
    quota: float
    throttled_ms: int
