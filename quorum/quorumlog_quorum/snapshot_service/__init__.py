"""What a running node does with snapshots: it takes, serves, stores, loads and deletes them."""
