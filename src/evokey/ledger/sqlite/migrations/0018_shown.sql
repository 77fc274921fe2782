-- What searches and answers showed, for a while: a rating or a click that comes later can be understood.
CREATE TABLE shown (
  id TEXT PRIMARY KEY,
  query TEXT NOT NULL,
  actor TEXT,
  time REAL NOT NULL,
  epoch INTEGER NOT NULL,
  documents TEXT NOT NULL,  -- ids, best first, as JSON
  cited TEXT NOT NULL,      -- passages that an upvote credits, as JSON
  answer TEXT,
  mode TEXT,                -- 'interleaved' or 'shadow', where another epoch took part
  other INTEGER,
  other_documents TEXT      -- ids that the other epoch brought, as JSON
);
CREATE INDEX shown_by_time ON shown(time);
CREATE TABLE clicks (
  shown TEXT NOT NULL REFERENCES shown(id) ON DELETE CASCADE,
  document TEXT NOT NULL,
  PRIMARY KEY (shown, document)
) WITHOUT ROWID;
-- The vote of each actor ('' is nobody by name) on what was shown, and what it led to: a lesson, or a question to people.
CREATE TABLE ratings (
  shown TEXT NOT NULL,
  actor TEXT NOT NULL,
  query TEXT NOT NULL,
  up INTEGER NOT NULL,
  reason TEXT,
  cited TEXT NOT NULL,
  time REAL NOT NULL,
  epoch INTEGER NOT NULL,
  lesson INTEGER,
  review INTEGER,
  PRIMARY KEY (shown, actor)
) WITHOUT ROWID;
CREATE INDEX ratings_by_time ON ratings(time);
