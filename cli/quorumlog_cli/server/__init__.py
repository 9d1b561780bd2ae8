"""The name that a node's process had before it became a package of its own: `python -P -m quorumlog_cli.server`."""
