"""The controller on a loop: requests in, answers out once their records are committed."""
