-- Expansions that a model was paid for, so that an intent is paid for once.
CREATE TABLE expansions (
  query TEXT NOT NULL,
  expander TEXT NOT NULL,
  name TEXT NOT NULL,
  units TEXT NOT NULL,
  search TEXT NOT NULL,
  model TEXT,
  prompt TEXT,
  time REAL NOT NULL,
  alike TEXT,  -- the earlier query of the same intent that these units were made for
  PRIMARY KEY (query, expander)
) WITHOUT ROWID;
-- What expanding has cost so far, and what it has saved.
CREATE TABLE tally (name TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID;
