"""Commands for users and quotas."""
