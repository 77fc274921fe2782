-- Verdicts that an epoch does not learn from, because they harm what others ask. Who forgets a verdict forgets it here.
CREATE TABLE left_out (
  epoch INTEGER NOT NULL REFERENCES epochs(number) ON DELETE CASCADE,
  lesson INTEGER NOT NULL,
  document TEXT NOT NULL,
  PRIMARY KEY (epoch, lesson, document),
  FOREIGN KEY (lesson, document) REFERENCES verdicts(lesson, document) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX left_out_by_verdict ON left_out(lesson, document);
