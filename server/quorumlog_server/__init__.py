"""A node's process: its configuration, listeners and log directories, and the parts that they are given to.

This is the one package that joins broker, quorum and edges. `process/process.py` runs the process,
`config/config.py` reads its settings (`config/keys.py` lists them), `process/node.py` builds the node, and
`edge/real_edges.py` has the edges that the simulation replaces. Begin with `process/node.py`.
"""
