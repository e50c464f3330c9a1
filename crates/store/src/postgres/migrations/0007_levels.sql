-- Levels: what nodes know, and what they execute.
-- Why: a definition that says something new is refused until every node can read it, and a node that could not may not join.
-- Locks: presences, for a moment; no row is rewritten.
-- Nodes of the previous version may go on: a row of theirs says that they know the first level, as they do.

-- The level that definitions may need, in one row; it only grows.
CREATE TABLE level (
    one   boolean PRIMARY KEY CHECK (one),
    level smallint NOT NULL
);

INSERT INTO level (one, level) VALUES (true, 1);

-- `kinds`: of targets that a node has executors for, with commas between them.
ALTER TABLE presences
    ADD COLUMN level smallint NOT NULL DEFAULT 1,
    ADD COLUMN kinds text NOT NULL DEFAULT 'http';
