-- retain: a day leaves history, and only its rows are left. A straggler may make it again.
DROP INDEX IF EXISTS history_{day}_job;
DROP INDEX IF EXISTS history_{day}_rare;
DROP INDEX IF EXISTS history_{day}_tenant;
DROP INDEX IF EXISTS history_{day}_default;
ALTER TABLE history_{day} RENAME TO gone_{day};
DELETE FROM ranges WHERE day = {day};
