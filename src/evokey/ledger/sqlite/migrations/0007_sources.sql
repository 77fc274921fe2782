-- The file that a document was read from, where its id is a path: the same id from another file is no replacement.
CREATE TABLE sources (
  document TEXT PRIMARY KEY REFERENCES documents(id) ON DELETE CASCADE,
  path TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX sources_by_path ON sources(path);
