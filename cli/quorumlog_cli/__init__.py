"""The command `quorumlog`, and in `server` the composition of a node.

`main.py` finds the command and turns errors into exit codes; `commands` has one file per command. A command loads only
what it needs, because `--help` must answer at once. Begin with `main.py`.
"""
