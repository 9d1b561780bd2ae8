"""The workloads of the crash sweep: what is prepared undisturbed, and the change that is stopped at each call."""
