"""Everything that a node gets from the machine; the simulation passes other edges to the same node."""
