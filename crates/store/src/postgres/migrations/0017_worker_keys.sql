-- Workers' keys: the queues that a key names.
-- Why: a worker gets work from named queues and sees nothing else.
-- Locks: keys, for a moment; no row is rewritten.
-- Nodes of the previous version may go on: to them a worker's key has a role that is not known, and opens nothing.

-- Names with a space between; none for all other roles.
ALTER TABLE keys ADD COLUMN queues text;
