-- A sample of what was searched: of all queries, those whose hashes are the smallest.
CREATE TABLE traffic (query TEXT PRIMARY KEY, hash INTEGER NOT NULL) WITHOUT ROWID;
