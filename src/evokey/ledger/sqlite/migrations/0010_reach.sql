-- Which questions an epoch acts on: those near a taught one, by whose measure and how near; NULL acts on all.
ALTER TABLE epochs ADD COLUMN reach TEXT;
