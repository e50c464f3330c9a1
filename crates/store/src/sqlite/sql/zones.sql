-- open, and after a rollback; rules_changed: zones that jobs follow, and those of calendars that were written by a version
-- that did not record them.
SELECT name, digest FROM zones
UNION ALL
SELECT DISTINCT zone, 0 FROM calendars INDEXED BY calendars_zone
WHERE zone IS NOT NULL AND NOT EXISTS (SELECT 1 FROM zones WHERE name = zone)
ORDER BY 1
