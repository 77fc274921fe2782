"""Look at a memory: why a document is found, what an epoch changed, what lessons do, whether files are sound."""
