-- How many forgets there were: what a process noted in its memory before the latest one is discarded.
CREATE TABLE forgets (only INTEGER PRIMARY KEY CHECK (only = 1), count INTEGER NOT NULL);
-- Forgets that are not finished: what other files must still erase (NULL once they have), and what that waits for.
CREATE TABLE erasing (number INTEGER PRIMARY KEY, what TEXT, waits_for TEXT NOT NULL);
