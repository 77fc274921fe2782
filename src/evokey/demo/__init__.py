"""A demonstration that runs anywhere: the documentation of the Python standard library, and questions about it."""
