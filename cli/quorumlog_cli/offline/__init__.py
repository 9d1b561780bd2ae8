"""Reading files of a node that may be down: batches, indexes and the metadata log, as text or JSON."""
