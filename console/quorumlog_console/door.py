"""Who gets in: whether the cluster asks who its clients are, and logins that are tried against it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from quorumlog.client.admin import BROKER_RESOURCE
from quorumlog.client.asynchronous import AsyncAdmin
from quorumlog.client.errors import AuthenticationFailed, ConfigError, QuorumlogError, RequestFailed
from quorumlog.messages.cluster import ConfigDescription
from quorumlog.rpc.transport import RpcError

MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")  # tried in this order
PROTOCOL, MECHANISM = "security_protocol", "sasl_mechanism"
OF_A_PERSON = ("sasl_username", "sasl_password", "sasl_jaas_config", "sasl_oauthbearer_token")
ASKED = (
    "listeners", "listener.security.protocol.map", "controller.listener.names", "inter.broker.listener.name",
    "ssl.client.auth", "authorizer.class.name",
)  # fmt: skip


REFUSED = "The cluster does not take this user and password."


class LoginFailed(Exception):
    """For the person who tried; says nothing about which part was wrong."""


def takes_passwords(client: Mapping[str, Any]) -> bool:
    return str(client.get(PROTOCOL, "PLAINTEXT")).upper().startswith("SASL_")


def shows_certificate(client: Mapping[str, Any]) -> bool:
    """Then whoever opens the console would act as its name."""
    return any(client.get(name) for name in ("ssl_keystore_location", "ssl_keystore_key"))


async def cluster_asks(client: Mapping[str, Any]) -> bool:
    """Whether a listener for clients asks who they are. What the cluster does not tell counts as yes.

    Raises QuorumlogError, RpcError while nobody answers.
    """
    if takes_passwords(client) or shows_certificate(client):
        return True
    async with AsyncAdmin(client) as admin:
        try:
            cluster = await admin.describe_cluster()
            if not cluster.brokers:
                return True
            node_id = next((one.node_id for one in cluster.brokers if not one.fenced), cluster.brokers[0].node_id)
            found = await admin.describe_configs(str(node_id), resource_type=BROKER_RESOURCE, names=ASKED)
        except AuthenticationFailed:
            return True
        except RequestFailed as error:
            if error.code.retriable:
                raise
            return True
    return says_asks(found)


def says_asks(found: ConfigDescription) -> bool:
    """found: the settings ASKED of a broker. A listener that only nodes use does not count."""
    values = {one.name: one.value or "" for one in found.configs}
    if values.get("authorizer.class.name"):
        return True
    protocols = dict(_pairs(values.get("listener.security.protocol.map", "")))
    own = {one.strip().upper() for one in values.get("controller.listener.names", "").split(",") if one.strip()}
    names = [one.partition("://")[0].strip().upper() for one in values.get("listeners", "").split(",") if one.strip()]
    by_certificate = values.get("ssl.client.auth", "none") in ("required", "requested")
    for name in names:
        protocol = protocols.get(name, name)
        if name not in own and (protocol.startswith("SASL_") or (protocol == "SSL" and by_certificate)):
            return True
    return False


def _pairs(text: str) -> list[tuple[str, str]]:
    found = []
    for pair in text.split(","):
        name, _, protocol = pair.partition(":")
        found.append((name.strip().upper(), protocol.strip().upper()))
    return found


async def log_in(client: Mapping[str, Any], user: str, password: str, timeout_ms: int) -> dict[str, Any]:
    """Options of a client that acts as this user, once the cluster has taken the password. Raises LoginFailed.

    A user may have a password by one mechanism only, so each that the listener offers is tried. PLAIN shows the
    password itself: in clear it is tried only where the listener offers nothing better.
    """
    chosen = str(client.get(MECHANISM) or "")
    refused = False
    for mechanism in (chosen,) if chosen in MECHANISMS else MECHANISMS:
        if mechanism == "PLAIN" and refused and str(client.get(PROTOCOL)).upper() != "SASL_SSL":
            break
        options = {name: value for name, value in client.items() if name not in OF_A_PERSON}
        options |= {MECHANISM: mechanism, "sasl_username": user, "sasl_password": password}
        try:
            async with asyncio.timeout(timeout_ms / 1000), AsyncAdmin(options) as admin:
                await admin.metadata()
        except AuthenticationFailed as error:
            refused = refused or f"not {mechanism}" not in str(error)  # else it offers others
        except ConfigError as error:
            raise LoginFailed(REFUSED) from error
        except (QuorumlogError, RpcError, TimeoutError) as error:
            raise LoginFailed(f"The cluster does not answer: {error or 'it took too long'}") from error
        else:
            return options
    raise LoginFailed(REFUSED if refused else "The cluster takes no passwords on this listener.")
