"""A start without feedback: a language model writes questions for passages, and confirmed ones are lessons."""
