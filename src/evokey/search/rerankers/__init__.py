"""Query and documents looked at together, after the search."""
