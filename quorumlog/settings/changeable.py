"""Settings of a node's file that can be changed while it runs: the same names, defaults, limits and meanings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from quorumlog.settings.config_key import MAX_LONG, ConfigKey, Kind
from quorumlog.settings.key import NodeKey, parse_bool, parse_bytes, parse_float, parse_int, parse_list

_KINDS: Mapping[Callable[[str], Any], Kind] = {
    parse_bool: Kind.BOOLEAN,
    parse_bytes: Kind.WHOLE,
    parse_float: Kind.FRACTION,
    parse_int: Kind.WHOLE,
    parse_list: Kind.LIST,
}


def changeable(key: NodeKey, doc: str = "") -> ConfigKey:
    """doc: where it means something else than in a file. Sizes are told in bytes, without a unit."""
    kind = _KINDS[key.parse]
    largest = sys.float_info.max if kind is Kind.FRACTION else MAX_LONG
    return ConfigKey(
        name=key.name,
        kind=kind,
        default=key.default or "",
        minimum=0 if key.minimum is None else key.minimum,
        maximum=largest if key.maximum is None else key.maximum,
        doc=doc or key.doc,
    )
