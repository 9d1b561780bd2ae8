"""`quorumlog top`: what of a watched cluster stands on a screen (words, tables, views), and the screen (screen/).

Only screen/ imports textual; `--once` needs none of it.
"""
