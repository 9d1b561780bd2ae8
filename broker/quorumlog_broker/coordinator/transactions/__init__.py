"""Transaction coordinator: producer ids and epochs of transactional ids, and transactions from begin to last marker."""
