-- The tenant that is always there: nothing changes here. SQLite leaves it out of some indexes while it is alone; PostgreSQL, with
-- several writers, does not notice what these cost.
-- Locks: nothing.
-- Nodes of the previous version may go on.

SELECT 1;
