-- Low-water marks: up to where nothing of a shard was undecided and due.
-- Why: whoever takes a shard over read what is due from the beginning, through all that is over and that somebody's long
-- transaction keeps.
-- Locks: presences and leases, for a moment; no row is rewritten.
-- Nodes of the previous version may go on: they write no mark, and shards that they held are read from the beginning.

-- That of all shards that a presence holds, moved by its beats; and how often it has taken some, so that a beat that does not
-- know of them moves nothing. None of a node of the previous version.
ALTER TABLE presences ADD COLUMN low_water bigint, ADD COLUMN taken integer NOT NULL DEFAULT 0;

-- That of a shard which was given up; of one that is held it is its holder's.
ALTER TABLE leases ADD COLUMN low_water bigint;
