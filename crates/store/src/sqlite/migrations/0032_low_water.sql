-- Low-water marks: up to where nothing of a shard was undecided and due.
-- Why: whoever takes a shard over goes on from there, and does not read what is long over.
-- Locks: the file, before it is served.
-- The previous version must have stopped, and cannot open the file afterwards.

-- That of the shards of a presence that has ended in good order. Of one that was killed nothing is known.
ALTER TABLE presences ADD COLUMN low_water INTEGER;

-- That of a shard which was given up.
ALTER TABLE leases ADD COLUMN low_water INTEGER NOT NULL DEFAULT 0;
