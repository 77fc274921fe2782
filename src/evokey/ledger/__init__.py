"""The truth: documents, lessons and epochs, as texts. Everything else in a memory is derived from it."""
