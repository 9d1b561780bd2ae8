"""A broker: partitions, replication, and the handlers of its APIs, in rooms (see docs/architecture.md).

`node.py` builds one broker and starts it; `data_plane.py` joins the rooms that hold and move records. Begin there.
"""
