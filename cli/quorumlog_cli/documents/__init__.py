"""What each command prints with `-o json`: typed dictionaries, one file for a folder of commands.

`table.py` says which command prints which; `schema.py` makes JSON Schemas of them, which `quorumlog schema` shows.
A field that is always there may not go, and its type may not change: programs read it. New fields may come.
"""
