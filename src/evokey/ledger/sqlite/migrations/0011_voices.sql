-- Lessons and verdicts that an epoch does not learn from, because they harm what others ask; NULL: learns from all.
ALTER TABLE epochs ADD COLUMN left_out TEXT;
