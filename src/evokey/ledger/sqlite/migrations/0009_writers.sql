-- Who has written documents, in order, and from which number on. Keys tell the last writer that they know of: beside a
-- ledger that was restored, where numbers are given again, they belong to other documents.
CREATE TABLE writers (seq INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, first INTEGER NOT NULL);
