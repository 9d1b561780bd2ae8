"""How a run measures and tells: the machine, processor time, turns of a loop, syncs, rounds, the report."""
