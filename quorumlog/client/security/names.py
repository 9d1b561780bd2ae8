"""The names that other clients give to the options of security, and what they become here.

Java's are the names here, with dots or underscores. librdkafka's and kafka-python's are other words for the same.
"""

from __future__ import annotations

from collections.abc import Mapping

OTHER_NAMES: Mapping[str, str] = {
    # librdkafka
    "sasl_mechanisms": "sasl_mechanism",
    "ssl_ca_location": "ssl_truststore_location",
    "ssl_ca_pem": "ssl_truststore_certificates",
    "ssl_certificate_location": "ssl_keystore_location",
    "ssl_certificate_pem": "ssl_keystore_certificate_chain",
    "ssl_key_pem": "ssl_keystore_key",
    "sasl_oauthbearer_client_id": "sasl_oauthbearer_client_credentials_client_id",
    "sasl_oauthbearer_client_secret": "sasl_oauthbearer_client_credentials_client_secret",
    # kafka-python, aiokafka
    "sasl_plain_username": "sasl_username",
    "sasl_plain_password": "sasl_password",
    "ssl_cafile": "ssl_truststore_location",
    "ssl_certfile": "ssl_keystore_location",
    "ssl_keyfile": "ssl_key_location",
    "ssl_password": "ssl_key_password",
    "sasl_oauth_token_provider": "sasl_oauthbearer_token",
}


def canonical(name: str) -> str:
    """The name of the option here; itself if it has no other."""
    key = name.replace(".", "_").replace("-", "_")
    return OTHER_NAMES.get(key, key)
