"""The simulated edges: disks, workers, network and time of a whole cluster in one process."""
