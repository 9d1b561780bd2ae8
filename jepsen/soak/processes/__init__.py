"""Real processes for some minutes: a local cluster with short settings, clients, kills, and samples of the kernel."""
