"""The command `quorumlog`.

`main.py` finds the command and turns errors into exit codes; `commands` has one file per command, by noun. A command
loads only what it needs, because `--help` must answer at once. Begin with `main.py`.
"""
