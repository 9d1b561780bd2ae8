"""kill -9 and SIGSTOP of the active controller in a loop, under a load of metadata changes, with real processes."""
