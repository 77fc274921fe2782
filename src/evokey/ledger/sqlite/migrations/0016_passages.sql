-- Passages that a verdict names: parts of the text that it was given for.
CREATE TABLE passages (
  lesson INTEGER NOT NULL,
  document TEXT NOT NULL,
  start INTEGER NOT NULL,
  stop INTEGER NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY (lesson, document, start, stop),
  FOREIGN KEY (lesson, document) REFERENCES verdicts(lesson, document) ON DELETE CASCADE
) WITHOUT ROWID;
