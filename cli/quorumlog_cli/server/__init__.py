"""A node's process: its configuration, listeners and log directories, and the parts that they are given to.

This is the one package that joins broker, quorum and edges. `process.py` runs the process, `config.py` reads its
settings (`keys.py` lists them), `node.py` builds the node; `real_edges.py` has the edges that the simulation replaces.
Begin with `node.py`.
"""
