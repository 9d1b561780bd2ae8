"""Virtual time: the queue of events, the clocks and loops that run on it, and phases of a run."""
