"""The simulated edges: disk, workers, network and time of a whole cluster in one process."""
