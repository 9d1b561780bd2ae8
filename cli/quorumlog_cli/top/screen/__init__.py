"""The screen of `quorumlog top`, by textual (extra `ui`). Colours are the terminal's own sixteen."""
