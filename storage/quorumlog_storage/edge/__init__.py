"""Where the log engine touches the machine: files and threads. Everything else in `storage` is given these."""
