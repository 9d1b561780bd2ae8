"""A node loads Kafka's schemas before it serves, not when its first client comes."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from quorumlog.wire.protocol.apis import ALWAYS_USED, APIS, load_newest
assert not any(name.startswith("kio.schema.fetch.") for name in sys.modules), "loaded by importing"
load_newest()
before = set(sys.modules)
used = [api for api in APIS if api.schema in ALWAYS_USED]
assert len(used) == len(ALWAYS_USED)
for api in used:
    api.request_shape(api.newest), api.response_shape(api.newest)
assert set(sys.modules) == before, sorted(set(sys.modules) - before)
print("loaded")
"""


def test_nothing_of_the_newest_versions_is_left_to_load() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.strip() == "loaded", done.stderr
