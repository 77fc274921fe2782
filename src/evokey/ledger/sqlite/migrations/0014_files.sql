-- The file of a document as it was when it was read, to see whether it has changed: size, time (ns) and hash of the bytes,
-- and the version of the reader.
ALTER TABLE sources ADD COLUMN size INTEGER NOT NULL DEFAULT -1;
ALTER TABLE sources ADD COLUMN modified INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sources ADD COLUMN hash TEXT NOT NULL DEFAULT '';
ALTER TABLE sources ADD COLUMN reader INTEGER NOT NULL DEFAULT 0;
