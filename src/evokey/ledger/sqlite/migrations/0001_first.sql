-- Documents as they are now. A number is never used twice; new content under an old id gets a new number.
CREATE TABLE documents (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  title TEXT NOT NULL,
  text TEXT NOT NULL,
  metadata TEXT NOT NULL,
  hash TEXT NOT NULL,
  vector BLOB  -- only where the caller hands vectors in: they cannot be made again
);
-- Metadata, flattened for filters: one row for each scalar and each element of a list.
CREATE TABLE facts (
  number INTEGER NOT NULL REFERENCES documents(number) ON DELETE CASCADE,
  field TEXT NOT NULL,
  value NOT NULL
);
CREATE INDEX facts_by_value ON facts(field, value, number);
CREATE INDEX facts_by_number ON facts(number);
-- Numbers that are gone, in order, so that readers catch up without reading everything again.
CREATE TABLE removed (seq INTEGER PRIMARY KEY AUTOINCREMENT, number INTEGER NOT NULL);

-- Lessons: append-only but for forget.
CREATE TABLE lessons (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  query TEXT NOT NULL,
  units TEXT NOT NULL,
  actor TEXT,
  verifier TEXT NOT NULL,
  time REAL NOT NULL,
  retrieved TEXT NOT NULL,
  vector BLOB
);
CREATE INDEX lessons_by_actor ON lessons(actor);
CREATE INDEX lessons_by_query ON lessons(query);
CREATE TABLE verdicts (
  lesson INTEGER NOT NULL REFERENCES lessons(number) ON DELETE CASCADE,
  document TEXT NOT NULL,
  hash TEXT NOT NULL,
  grade REAL NOT NULL,
  PRIMARY KEY (lesson, document)
) WITHOUT ROWID;
CREATE INDEX verdicts_by_document ON verdicts(document);

-- What was learned, epoch by epoch: up to which lesson, with which choice. Keys follow from that.
CREATE TABLE epochs (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  lessons_to INTEGER NOT NULL,
  choice TEXT NOT NULL,
  weights TEXT NOT NULL,
  time REAL NOT NULL,
  report TEXT NOT NULL,
  redacted INTEGER NOT NULL DEFAULT 0
);

-- How far evolve was last asked to learn, published or not: forget refits up to there.
CREATE TABLE asked (only INTEGER PRIMARY KEY CHECK (only = 1), lessons_to INTEGER NOT NULL);

-- Derived, and kept here only so that forgetting erases it in the same stroke: the untaught top documents of taught queries.
CREATE TABLE pools (
  retriever TEXT NOT NULL,
  query TEXT NOT NULL,
  numbers BLOB NOT NULL,
  scores BLOB NOT NULL,
  newest INTEGER NOT NULL,
  removals INTEGER NOT NULL,
  PRIMARY KEY (retriever, query)
) WITHOUT ROWID;
