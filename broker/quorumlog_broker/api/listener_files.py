"""The certificates of this broker's listeners, read again at once because a client sets their path anew.

It is Kafka's way (`DynamicBrokerConfig`): `listener.name.NAME.ssl.keystore.location` of one broker is set to the path
that it has. Nothing is stored: the path stands in the node's file, and another one is for the file and a restart. All
other keys of a listener's protection are read at the start only.
"""

from __future__ import annotations

import os.path
from dataclasses import replace
from typing import Protocol

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.admin import AlterConfigsResource
from quorumlog.settings.key import keys_of
from quorumlog.settings.security import LISTENER_PREFIX, OF_LISTENER
from quorumlog_quorum.metadata.image import BROKER_RESOURCE

KEYSTORE, TRUSTSTORE = "ssl.keystore.location", "ssl.truststore.location"
READ_AGAIN = (KEYSTORE, TRUSTSTORE)
OF_TYPE, PEM = ("ssl.keystore.type", "ssl.truststore.type"), "PEM"
OF_PROTECTION = frozenset(key.name for part in OF_LISTENER for key in keys_of(part))
_SET = 0  # an operation


class NotTaken(Exception):
    """The message says why what is in use stays."""


class ListenerFiles(Protocol):
    """listener: its name in lower case."""

    def path_of(self, listener: str, key: str) -> str | None:
        """key: of READ_AGAIN. None: the listener has no such file."""

    async def read_again(self, listener: str, *, validate_only: bool) -> None:
        """New connections get what is in the files now. Raises NotTaken."""


class NoFiles:
    """Of a node whose listeners have no TLS."""

    def path_of(self, listener: str, key: str) -> str | None:
        return None

    async def read_again(self, listener: str, *, validate_only: bool) -> None:
        raise AssertionError(f"{listener} has no files")


async def read_again(
    asked: AlterConfigsResource, files: ListenerFiles, node_id: NodeId, *, validate_only: bool
) -> AlterConfigsResource:
    """Carries out what of the request is about listeners' files, and returns the rest.

    Raises ApiError(INVALID_REQUEST), as Kafka does: then nothing has changed, unless a first listener's files were good
    and a second one's are not.
    """
    if asked.resource_type != BROKER_RESOURCE:
        return asked
    listeners: dict[str, None] = {}
    rest = []
    for change in asked.configs:
        listener, key = _divided(change.name)
        if key not in OF_PROTECTION:
            rest.append(change)
            continue
        if listener and key in OF_TYPE and change.value == PEM:
            continue  # tools name it beside the path; it is the only one that there is
        if key not in READ_AGAIN or not listener:
            raise _invalid(_why_not(change.name, key))
        _check_broker(asked.resource_name, change.name, node_id)
        if change.operation == _SET:
            _check_path(files.path_of(listener, key), change.name, change.value)
            listeners[listener] = None
    for listener in listeners:
        try:
            await files.read_again(listener, validate_only=validate_only)
        except NotTaken as error:
            raise _invalid(f"the certificates in use stay: {error}") from None
    return replace(asked, configs=tuple(rest))


def _divided(name: str) -> tuple[str, str]:
    """The listener and its key; "" and the name for a key of all listeners, and for what is no key of a listener."""
    for key in OF_PROTECTION if name.startswith(LISTENER_PREFIX) else ():
        if name.endswith(f".{key}"):
            return name[len(LISTENER_PREFIX) : -len(key) - 1], key
    return "", name


def _why_not(name: str, key: str) -> str:
    if key in READ_AGAIN:
        return f"{name} is set for one listener: listener.name.NAME.{key}"
    return (
        f"{name} is read at the start of a node: change it in the node's file and restart it. Without a restart only "
        f"the files of {KEYSTORE} and {TRUSTSTORE} are read again"
    )


def _check_broker(resource_name: str, name: str, node_id: NodeId) -> None:
    if not resource_name:
        raise _invalid(f"{name} is set for one broker, not for all: name the broker's id")
    if resource_name != str(node_id):
        raise _invalid(f"{name} of broker {resource_name} is changed by that broker, and this is broker {node_id}")


def _check_path(path: str | None, name: str, value: str | None) -> None:
    if path is None:
        raise _invalid(f"{name}: this node has no such listener, or no such file for it")
    if os.path.normpath(value or "") != os.path.normpath(path):  # what is read is the file's own path
        raise _invalid(
            f"{name} is {path} in the node's file: put the new certificate there and set the same path again, or "
            "change the node's file and restart it"
        )


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
