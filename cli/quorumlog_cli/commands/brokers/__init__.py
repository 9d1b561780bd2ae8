"""Commands for brokers and their log directories."""
