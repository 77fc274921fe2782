"""A learning layer beside a search that is not ours: it keeps lessons, and no documents."""
