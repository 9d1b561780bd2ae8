"""Settings of a broker that its edges obey, and that can be changed while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _number_in_file(_name: str, in_file: int) -> int:
    return in_file


def _text_in_file(_name: str, in_file: str) -> str:
    return in_file


@dataclass(slots=True)
class OwnNotice:
    """Shared by a node and its edges. The node sets both functions: from the name of a setting and what the node's file
    says to what is in force. name: of `quorumlog.configs.live.IN_FORCE`."""

    number: Callable[[str, int], int] = _number_in_file
    text: Callable[[str, str], str] = _text_in_file
