-- Lessons on hold: they stay in the epochs that have them, and take part in no new one.
CREATE TABLE held (lesson INTEGER PRIMARY KEY REFERENCES lessons(number) ON DELETE CASCADE);
-- Lessons that an epoch (or an evolve) left out although their numbers are within it: ranges of numbers, as JSON.
ALTER TABLE epochs ADD COLUMN omitted TEXT NOT NULL DEFAULT '[]';
ALTER TABLE asked ADD COLUMN omitted TEXT NOT NULL DEFAULT '[]';
