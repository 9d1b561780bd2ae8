"""Which options are a schema registry's, and which of them are secrets. Small: every command loads it."""

from __future__ import annotations

from quorumlog.client.security.names import canonical

PREFIX = "schema_registry_"
URL = f"{PREFIX}url"
SECRETS = frozenset({"basic_auth_user_info", "bearer_auth_token", "ssl_key_password", "ssl_keystore_key"})
PLAIN = (
    "basic_auth_user_info",
    "basic_auth_credentials_source",
    "bearer_auth_token",
    "bearer_auth_credentials_source",
)
OF_SERIALIZERS = ("auto_register_schemas", "normalize_schemas", "subject_name_strategy")


def is_registry_option(name: str) -> bool:
    """name: with dots or underscores. Of a command's -X: it belongs to the registry, not to a client of Kafka's."""
    key = name.replace(".", "_")
    return key.startswith(PREFIX) or key in PLAIN or key in OF_SERIALIZERS


def is_registry_secret(name: str, value: object) -> bool:
    """An address with a user in it is one, too."""
    key = name.replace(".", "_")
    return canonical(key.removeprefix(PREFIX)) in SECRETS or (key == URL and "@" in str(value))
