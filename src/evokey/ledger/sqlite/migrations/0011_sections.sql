-- Named parts of a document's text that its headings do not tell, as JSON: [[start, end, "p. 12"], …].
ALTER TABLE documents ADD COLUMN sections TEXT NOT NULL DEFAULT '[]';
