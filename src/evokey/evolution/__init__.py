"""Lessons → attribution → proposed rows → guard → a new epoch. In batches, never inside a search."""
