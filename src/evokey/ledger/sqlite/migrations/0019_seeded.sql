-- Passages that a language model has written questions for, by the hash of their text: the next seed asks for others.
CREATE TABLE seeded (document TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (document, hash)) WITHOUT ROWID;
