"""A broker: partitions, their replication, the lifecycle towards the controller, and the APIs.

Each room (package) says in its `__init__` what it holds, what it may use and where to begin. `node.py` puts a broker
together; `data_plane.py` does so for the rooms that hold and move records. pyproject.toml holds the layers:

    node > api | data_plane > replication > produce | fetch > replicas > logdirs | delayed > partition | lifecycle

A broker never imports the Raft core or the controller: it knows the quorum as a subscription to committed metadata.
"""
