-- Levels: what nodes know, and what they execute.
-- Why: a definition that says something new is refused until every node can read it, and a node that could not may not join.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

ALTER TABLE presences ADD COLUMN level INTEGER NOT NULL DEFAULT 1;

-- The kinds of targets that a node has executors for, with commas between them.
ALTER TABLE presences ADD COLUMN kinds TEXT NOT NULL DEFAULT 'http';

-- The level that definitions may need, in one row; it only grows.
CREATE TABLE level (
    one   INTEGER PRIMARY KEY,
    level INTEGER NOT NULL
) STRICT;

INSERT INTO level (one, level) VALUES (1, 1);
