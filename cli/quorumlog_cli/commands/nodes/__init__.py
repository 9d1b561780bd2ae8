"""Commands for nodes on this machine: a local cluster, one server, its configuration and its files."""
