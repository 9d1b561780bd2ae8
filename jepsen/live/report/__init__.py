"""The report of a run: its facts, its page, its chart."""
