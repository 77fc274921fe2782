"""Text → vectors, dense (numpy) or sparse (terms). Query side and document side are separate calls."""
