"""Parts of a document: where they begin and end, what they are called, which of them answers, and what is around."""
