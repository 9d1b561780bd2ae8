"""What `up` tells of a cluster with TLS: who the first user is, and by which file each kind of client logs in."""

from __future__ import annotations

from typing import Any

from quorumlog.testing.layout import Layout
from quorumlog.testing.protected import JAVA_FILE, LIBRDKAFKA_FILE, OUR_FILE, Access

_FILES = {"java": JAVA_FILE, "librdkafka": LIBRDKAFKA_FILE, "quorumlog": OUR_FILE}


def access_document(layout: Layout) -> dict[str, Any]:
    """Empty for a cluster without TLS."""
    if not layout.user:
        return {}
    access = Access(layout)
    return {
        "user": layout.user,
        "password_file": str(access.password_file),
        "truststore": str(access.trust),
        "client_files": {family: str(layout.root / name) for family, name in _FILES.items()},
    }


def access_lines(layout: Layout) -> list[str]:
    """For people. The password is named by its place, for terminals are recorded."""
    access, root = Access(layout), layout.root
    return [
        f"  user        {layout.user}, a super user; its password is in {access.password_file}",
        f"  clients     Java, Kafka's tools   --command-config {root / JAVA_FILE}",
        f"              librdkafka, kcat      -F {root / LIBRDKAFKA_FILE}",
        f"              quorumlog             nothing in this folder; elsewhere -X {root / JAVA_FILE}",
        f"                                    or the profile of {root / OUR_FILE}",
        "              Python                "
        f"Cluster({layout.bootstrap_servers!r}, security_protocol='SASL_SSL', sasl_mechanism='SCRAM-SHA-512',",
        f"                                    sasl_username={layout.user!r}, "
        f"sasl_password=Path({str(access.password_file)!r}).read_text().strip(),",
        f"                                    ssl_truststore_location={str(access.trust)!r})",
        "  others      quorumlog user create NAME   ·   quorumlog acl create topic:hello --allow User:NAME --producer",
    ]
