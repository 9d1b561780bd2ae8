"""Found by Spark because of its name: registers the format `quorumlog`. The connector is `quorumlog.spark`."""

from __future__ import annotations

from quorumlog.spark import DefaultSource

__all__ = ["DefaultSource"]
