"""kafka-configs of users, clients and addresses: SCRAM credentials and quotas."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from client_matrix import Place

from bench.peers import kafka_tools as kafka
from bench.peers.kafka_tools import ToolFailed, get_kafka

USER = "ops,eu=1"  # a name with signs of SASL, as Kafka's own tools would send it


def configs(place: Place, *args: str) -> str:
    return get_kafka().run(kafka.CONFIGS, "--bootstrap-server", place.servers, *args)


def scram(place: Place) -> None:
    """One credential at a time: a request may name a user once, by this controller as by Kafka's."""
    ada = ("--entity-type", "users", "--entity-name", f"ada-{place.topic}")
    for mechanism, iterations in (("SCRAM-SHA-512", 4096), ("SCRAM-SHA-256", 8192)):
        wanted = f"{mechanism}=[iterations={iterations},password=correct horse]"
        assert "Completed updating config" in configs(place, *ada, "--alter", "--add-config", wanted)
        assert f"{mechanism}=iterations={iterations}" in configs(place, *ada, "--describe")
    assert f"ada-{place.topic}" in configs(place, "--entity-type", "users", "--describe")
    with pytest.raises(ToolFailed, match=r"Too many|16384"):
        configs(place, *ada, "--alter", "--add-config", "SCRAM-SHA-512=[iterations=20000,password=p]")
    configs(place, *ada, "--alter", "--delete-config", "SCRAM-SHA-512")
    said = configs(place, *ada, "--describe")
    assert "SCRAM-SHA-256=iterations=8192" in said and "SCRAM-SHA-512" not in said
    configs(place, *ada, "--alter", "--delete-config", "SCRAM-SHA-256")
    assert "SCRAM" not in configs(place, *ada, "--describe")


def delegation_tokens(place: Place) -> None:
    """Every verb is refused as Kafka refuses it to clients that have not logged in."""
    verbs = (
        ("--create", "--max-life-time-period", "-1"),
        ("--describe",),
        ("--renew", "--renew-time-period", "-1", "--hmac", "AAAA"),
        ("--expire", "--expiry-time-period", "-1", "--hmac", "AAAA"),
    )
    with TemporaryDirectory() as folder:
        config = Path(folder) / "client.properties"
        config.touch()
        for verb in verbs:
            words = ("--bootstrap-server", place.servers, "--command-config", str(config))
            with pytest.raises(ToolFailed, match="UnsupportedByAuthentication"):
                get_kafka().run(kafka.DELEGATION_TOKENS, *words, *verb)


def quotas(place: Place) -> None:
    """Each kind of entity, named and default, set, shown and removed."""
    named, default = "--entity-name", "--entity-default"
    users, clients, ips = (("--entity-type", kind) for kind in ("users", "clients", "ips"))
    rate = "producer_byte_rate=1024"
    entities = [
        ((*users, named, USER), rate, f"user-principal '{USER}'"),
        ((*users, default), "consumer_byte_rate=2048", "the default user-principal"),
        ((*clients, named, "<default>"), "request_percentage=12.5", "client-id '<default>'"),
        ((*clients, default), rate, "the default client-id"),
        ((*users, named, USER, *clients, default), "controller_mutation_rate=0.5", "the default client-id"),
        ((*ips, named, "127.0.0.1"), "connection_creation_rate=50", "ip '127.0.0.1'"),
        ((*ips, default), "connection_creation_rate=100", "the default ip"),
    ]
    for entity, config, shown in entities:
        assert "Completed updating" in configs(place, *entity, "--alter", "--add-config", config)
        said = configs(place, *entity, "--describe")
        assert shown in said and config in said, said
    for entity, config, _ in entities:
        configs(place, *entity, "--alter", "--delete-config", config.split("=")[0])
    for kind in (users, clients, ips, (*users, *clients)):
        assert "_rate" not in (said := configs(place, *kind, "--describe")) and "_percentage" not in said, said
    for wrong, why in (("producer_byte_rate=-1", "is above 0"), ("consumer_byte_rate=1.5", "whole number")):
        with pytest.raises(ToolFailed, match=f"InvalidRequestException.*{why}"):
            configs(place, *users, named, USER, "--alter", "--add-config", wrong)
