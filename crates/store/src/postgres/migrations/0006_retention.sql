-- Retention: from when a day of history is kept.
-- Why: a day goes when its keep time has passed since its end and since its last entry, whatever still lives.
-- Locks: nothing that was there.
-- Nodes of the previous version may go on: they note nothing, so that what they write long after its day may go with that
-- day, and they keep every day that is younger than the oldest run alive.

-- Days that were written to long after their end, and from when their keep time counts.
CREATE TABLE stragglers (
    day       bigint PRIMARY KEY,
    kept_from bigint NOT NULL
);
