"""gRPC, and the parts that all transports share.

gRPC reads GRPC_VERBOSITY once, when it is imported, and only modules of this package import it. By default its notices
about closed connections would appear on a client application's stderr. To see them, set the variable.
"""

from __future__ import annotations

import os

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
