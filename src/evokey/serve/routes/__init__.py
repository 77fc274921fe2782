"""Routes, one file for each kind of thing. All of them call verbs of Memory."""
