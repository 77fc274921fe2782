"""Forgetting to the last byte: what goes from the ledger, from every other place, and in which order."""
