CREATE TABLE seeded (
  document text COLLATE "C" NOT NULL,
  hash text COLLATE "C" NOT NULL,
  PRIMARY KEY (document, hash)
);
