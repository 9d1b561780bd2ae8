"""The nodes that are measured, as processes: a cluster of three, one of another tree, a node that measures itself."""
