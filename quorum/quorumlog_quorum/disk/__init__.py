"""What the quorum keeps on disk: the metadata log, and the files beside it."""
