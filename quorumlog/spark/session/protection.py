"""Security of reads and writes: what Spark's options cannot say, what they had better not say, and who is refused.

`client.carried` reads secrets and files on the driver. Spark itself keeps options as they are given, in plans
and in the event log, and hides those whose name or value its `spark.redaction.regex` knows. So a secret is named there
by where it is.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from quorumlog.client.errors import RequestFailed, Unavailable
from quorumlog.client.security.names import canonical
from quorumlog.client.security.options import SECRET_NAMES
from quorumlog.client.security.sources import is_reference

NOT_OPTIONS = {
    "sasl_oauthbearer_token": "it is a function, which no option can be: set sasl.oauthbearer.token.endpoint.url",
    "sasl_client_callback_handler_class": "it is a Java class",
    "sasl_login_callback_handler_class": "it is a Java class",
    "sasl_login_class": "it is a Java class",
    "sasl_kerberos_service_name": "Kerberos is not built: use SCRAM-SHA-512, PLAIN or OAUTHBEARER",
    "ssl_engine_factory_class": "it is a Java class",
    "security_providers": "they are Java classes",
}
PUBLIC = ("ssl_truststore_certificates", "ssl_keystore_certificate_chain")  # not shown, for their length
WITHOUT_SECRET = ("sasl_jaas_config",)  # where it has no word that is a secret
LOGIN_TIMEOUT_MS = 10_000
KEEP_MS = 300_000  # a connection of the driver, for its next batch


def warn_of_secrets(given: Mapping[str, str]) -> None:
    """given: Spark's options of a read or a write."""
    for name, value in given.items():
        if is_in_clear(name, value):
            warnings.warn(
                f"option {name!r} has a secret in clear, which Spark may show in plans, in its UI and in event logs: "
                "give env:NAME or file:PATH of the driver in its place, or ${file:PATH:KEY} in a JAAS line",
                stacklevel=3,
            )


def is_in_clear(name: str, value: str) -> bool:
    """An option of Spark's that has a secret itself, under any of its names."""
    lower = name.lower()
    prefix, _, rest = lower.partition(".")
    key = canonical(rest if prefix in ("kafka", "quorumlog") else lower)
    if key not in SECRET_NAMES or key in PUBLIC or not value or is_reference(key, value):
        return False
    return key not in WITHOUT_SECRET or "password" in value.lower() or "secret" in value.lower()


def prove_login(client: Mapping[str, Any]) -> None:
    """On the driver, before a task is made: a task that is refused would be run again, and again refused.

    A connection that has logged in is kept for the next batch of a stream.

    client: options of a client, carried. Raises AuthenticationFailed. Of everything else the tasks hear themselves, and
    have more time for it.
    """
    if str(client.get("security_protocol", "PLAINTEXT")).upper() == "PLAINTEXT":
        return
    from quorumlog.client.blocking_admin import Admin
    from quorumlog.client.options import CommonOptions
    from quorumlog.spark.session.kept_connections import Lease

    common = {name: value for name, value in client.items() if name in CommonOptions.__dataclass_fields__}
    lease = Lease(KEEP_MS)
    try:
        with Admin({**common, "default_api_timeout_ms": LOGIN_TIMEOUT_MS}, connect=lease.of_kind) as admin:
            admin.describe_cluster()
    except (Unavailable, RequestFailed):
        pass
