-- Sentinels: queries that no published choice may make worse than the untaught index has them.
CREATE TABLE pins (
  query TEXT NOT NULL,
  document TEXT NOT NULL,
  grade REAL NOT NULL,
  PRIMARY KEY (query, document)
) WITHOUT ROWID;
