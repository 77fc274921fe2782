-- Signatures of texts that verdicts are about and that are gone (evokey/ledger/signature.py).
CREATE TABLE signatures (hash TEXT PRIMARY KEY, signature BLOB NOT NULL) WITHOUT ROWID;
-- Documents that still contain most of an earlier text, which verdicts are about.
CREATE TABLE carried (
  number INTEGER NOT NULL REFERENCES documents(number) ON DELETE CASCADE,
  hash TEXT NOT NULL,
  PRIMARY KEY (number, hash)
) WITHOUT ROWID;
