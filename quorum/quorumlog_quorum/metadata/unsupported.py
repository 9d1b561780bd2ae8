"""The error for metadata that newer software wrote: intact, but not to be understood by this node."""

from __future__ import annotations

from quorumlog.ids import Offset


class UnsupportedMetadata(Exception):
    """A record, a version, a field or a feature level that this software does not know. The node must not go on.

    found: what the log holds. supported: what this software can handle in its place.
    offset: of the record; level: the metadata.version in force there; None: not known.
    """

    def __init__(self, found: str, supported: str, *, offset: Offset | None = None, level: int | None = None) -> None:
        where = "" if offset is None else f" at offset {offset}"
        in_force = "" if level is None else f", and metadata.version {level} is in force"
        super().__init__(
            f"the metadata log holds {found}{where}; this software supports {supported}{in_force}. "
            "Upgrade this node: start it again, on the same directories, with the newest software in the cluster"
        )
        self.found, self.supported, self.offset, self.level = found, supported, offset, level

    def at(self, offset: Offset, level: int) -> UnsupportedMetadata:
        """The same error, with the place where it was met."""
        return UnsupportedMetadata(self.found, self.supported, offset=offset, level=level)
