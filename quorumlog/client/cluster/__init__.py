"""What every client knows of its cluster: whom it calls (`link.py`), who leads what (`metadata_cache.py`)."""
