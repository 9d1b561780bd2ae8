"""gRPC, and the parts that all transports share.

`transport.py` is the seam. `calls.py` is the table of calls, whose messages `convert/` turns into bytes; `serving/` and
`calling/` are the two ends, the same for gRPC, the lane and the simulation; `grpc/` is gRPC over all of these.

gRPC reads its environment variables once, when it is imported, and only modules of this package import it. Where they
are not set already:

- GRPC_VERBOSITY: otherwise its notices about closed connections appear on a client application's stderr.
- GRPC_ENABLE_FORK_SUPPORT: otherwise it starts threads in a child of fork, too, and one in twenty children that only
  want to start another program is killed by that (grpc/grpc#43055): Spark's Java, for example, if its driver has read
  from a cluster before. A child that goes on to use gRPC without exec is not served with either value.
"""

from __future__ import annotations

import os

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
