"""The wires: gRPC, and what all wires share.

gRPC reads GRPC_VERBOSITY once, when it is imported, which only modules of this package do. Its information about closed
connections would land on the stderr of whoever uses a client; who wants it sets the variable.
"""

from __future__ import annotations

import os

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
