CREATE TABLE shown (
  id text COLLATE "C" PRIMARY KEY,
  query text COLLATE "C" NOT NULL,
  actor text COLLATE "C",
  time double precision NOT NULL,
  epoch bigint NOT NULL,
  documents text COLLATE "C" NOT NULL,
  cited text COLLATE "C" NOT NULL,
  answer text COLLATE "C",
  mode text COLLATE "C",
  other bigint,
  other_documents text COLLATE "C"
);
CREATE INDEX shown_by_time ON shown (time);
CREATE TABLE clicks (
  shown text COLLATE "C" NOT NULL REFERENCES shown(id) ON DELETE CASCADE,
  document text COLLATE "C" NOT NULL,
  PRIMARY KEY (shown, document)
);
CREATE TABLE ratings (
  shown text COLLATE "C" NOT NULL,
  actor text COLLATE "C" NOT NULL,
  query text COLLATE "C" NOT NULL,
  up int NOT NULL,
  reason text COLLATE "C",
  cited text COLLATE "C" NOT NULL,
  time double precision NOT NULL,
  epoch bigint NOT NULL,
  lesson bigint,
  review bigint,
  PRIMARY KEY (shown, actor)
);
CREATE INDEX ratings_by_time ON ratings (time);
ALTER TABLE shown ALTER query SET STATISTICS 0, ALTER actor SET STATISTICS 0, ALTER documents SET STATISTICS 0,
  ALTER cited SET STATISTICS 0, ALTER answer SET STATISTICS 0, ALTER other_documents SET STATISTICS 0;
ALTER TABLE clicks ALTER document SET STATISTICS 0;
ALTER TABLE ratings ALTER actor SET STATISTICS 0, ALTER query SET STATISTICS 0, ALTER cited SET STATISTICS 0;
