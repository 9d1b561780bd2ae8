"""What a log decides, as pure functions: commits, fetches, rolls, failures and leader epochs."""
