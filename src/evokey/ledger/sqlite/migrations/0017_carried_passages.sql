-- A verdict may name passages: then it is about their text, and that is what must still be there. -1: the whole document.
-- Signatures have another form since then, too; those of before cannot be made again.
DROP TABLE signatures;
DROP TABLE carried;
CREATE TABLE signatures (
  hash TEXT NOT NULL,
  start INTEGER NOT NULL,
  stop INTEGER NOT NULL,
  signature BLOB NOT NULL,
  PRIMARY KEY (hash, start, stop)
) WITHOUT ROWID;
CREATE TABLE carried (
  number INTEGER NOT NULL REFERENCES documents(number) ON DELETE CASCADE,
  hash TEXT NOT NULL,
  start INTEGER NOT NULL,
  stop INTEGER NOT NULL,
  PRIMARY KEY (number, hash, start, stop)
) WITHOUT ROWID;
