"""Joint transactions: many transactions of one group, decided in one record (decision 112)."""
