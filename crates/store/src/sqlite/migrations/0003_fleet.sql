-- Fleet: what each node does.
-- Why: nodes may do only part of the work, and everyone is told which.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

-- As `Parts::code`; all of them, unless a node says otherwise.
ALTER TABLE presences ADD COLUMN parts INTEGER NOT NULL DEFAULT 7;
