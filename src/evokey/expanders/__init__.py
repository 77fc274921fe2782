"""Query → expansion: the same need in more words. One file per method; prompts are files."""
