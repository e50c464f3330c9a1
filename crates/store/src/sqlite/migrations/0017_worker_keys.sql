-- Workers' keys: the queues that a key names.
-- Why: a worker gets work from named queues and sees nothing else.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

-- Names with a space between; none for all other roles.
ALTER TABLE keys ADD COLUMN queues TEXT;
