-- Fleet: what each node does; and doubts about calendars, counted.
-- Why: nodes may do only part of the work, and everyone is told which. A doubt that comes while jobs follow a calendar is
-- not lost.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

-- As `Parts::code`; all of them, unless a node says otherwise.
ALTER TABLE presences ADD COLUMN parts INTEGER NOT NULL DEFAULT 7;

-- How many times a job was written that another version of the calendar had aimed.
ALTER TABLE calendars ADD COLUMN doubts INTEGER NOT NULL DEFAULT 0;
