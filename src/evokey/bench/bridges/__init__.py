"""Bridges to other libraries of the field: what evokey measured, in theirs; and a memory as one of their retrievers."""
