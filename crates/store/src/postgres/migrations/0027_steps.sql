-- Steps: what plan reads, by steps of 64 ms, in each by shard (see place.rs); and how many shards a node has.
-- Why: each node read what all shards have due, and at every beat all leases, so that a database with many nodes was busy
-- with reading.
-- Locks: presences, for a moment. While the new index is made, nothing; a node that starts meanwhile plans slowly until it is
-- there.
-- Nodes of the previous version may go on. They find what is due by the index that goes: until they are replaced they look
-- through all jobs instead, so replace them soon.

-- None of a node of the previous version: then its leases are counted.
ALTER TABLE presences ADD COLUMN shards smallint;

-- Apart.

CREATE INDEX CONCURRENTLY jobs_steps ON jobs ((((due_at >> 6) << 14) | (shard::bigint << 6) | (due_at & 63)), id)
WHERE due_at IS NOT NULL;

DROP INDEX CONCURRENTLY jobs_due;
