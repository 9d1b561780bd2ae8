"""Batches encoded and decoded record by record; `columnar` does the same for whole columns."""
