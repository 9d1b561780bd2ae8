"""What has happened at a node: a bounded ring of events, and their kinds. Begin with `ring.py`."""
