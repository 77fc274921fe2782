"""Document → key texts: the words by which a document is found."""
