-- Steps: nothing changes here. Who opens the file has all shards, and reads what is due in its order.
-- Locks: nothing.
-- The previous version must have stopped, and cannot open the file afterwards.

SELECT 1;
