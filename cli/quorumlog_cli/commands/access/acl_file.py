"""Access rules as a file: JSON with one rule a line, sorted, so that two files can be compared line by line.

{"version":1,"acls":[{"resource":"topic:orders","pattern":"literal","principal":"User:a","permission":"allow",
"operation":"read","host":"*"}]}. `pattern`, `permission` and `host` may be left out: literal, allow, everywhere.
Another key is an error: a rule that says more than was understood would allow too much.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from quorumlog.security.acl.content import AclContent
from quorumlog_cli.commands.access.acl_words import (
    PATTERNS,
    PERMISSIONS,
    as_document,
    operation,
    principal,
    resource,
)
from quorumlog_cli.terminal.errors import CliError, Exit

VERSION = 1
MAX_CHARACTERS = 64 * 1024 * 1024
KEYS = ("resource", "pattern", "principal", "permission", "operation", "host")


def write_acls(acls: Iterable[AclContent]) -> str:
    lines = [json.dumps(as_document(acl), ensure_ascii=False) for acl in sorted(acls)]
    body = ",\n".join(lines)
    return f'{{"version":{VERSION},"acls":[\n{body}\n]}}\n' if lines else '{"version":1,"acls":[]}\n'


def read_acls(text: str) -> list[AclContent]:
    """In the file's order, each once. Raises CliError(DATA_INVALID), which names the entry, counted from 1."""
    if len(text) > MAX_CHARACTERS:
        raise _bad(f"the file has {len(text):,} characters; {MAX_CHARACTERS:,} are read at most")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _bad(f"the file is not JSON: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("acls"), list):
        raise _bad('the file is no document of the form {"version":1,"acls":[...]}')
    if document.get("version", VERSION) != VERSION:
        raise _bad(f"the file has version {document['version']!r}; version {VERSION} is read")
    return list(dict.fromkeys(_parsed(number, entry) for number, entry in enumerate(document["acls"], 1)))


def _parsed(number: int, entry: Any) -> AclContent:
    if not isinstance(entry, dict):
        raise _bad(f"entry {number} is no object")
    for key, value in entry.items():
        if key not in KEYS:
            raise _bad(f"entry {number}: {key!r} is none of {', '.join(KEYS)}")
        if not isinstance(value, str) or not value:
            raise _bad(f"entry {number}: {key} is no text")
    for key in ("resource", "principal", "operation"):
        if key not in entry:
            raise _bad(f"entry {number} has no {key}")
    pattern, permission = entry.get("pattern", "literal"), entry.get("permission", "allow")
    if pattern not in PATTERNS:
        raise _bad(f"entry {number}: the pattern {pattern!r} is none of {', '.join(PATTERNS)}")
    if permission not in PERMISSIONS:
        raise _bad(f"entry {number}: the permission {permission!r} is none of {', '.join(PERMISSIONS)}")
    try:
        kind, name = resource(entry["resource"])
        who, what = principal(entry["principal"]), operation(entry["operation"])
    except CliError as error:
        raise _bad(f"entry {number}: {error.message}") from None
    return AclContent(kind, name, PATTERNS[pattern], who, entry.get("host", "*"), what, PERMISSIONS[permission])


def _bad(text: str) -> CliError:
    return CliError(Exit.DATA_INVALID, text, "quorumlog acl export writes such a file")
