"""Quotas of clients: whom they are for, what is used of them, how long a client has to wait. Without IO."""
