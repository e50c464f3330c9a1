-- rules_changed: zones that jobs follow, and those of calendars that were written by a version that did not record them.
SELECT name, digest FROM zones
UNION ALL
SELECT DISTINCT calendar_zone(doc), 0::bigint FROM calendars
WHERE calendar_zone(doc) IS NOT NULL AND NOT EXISTS (SELECT FROM zones WHERE name = calendar_zone(doc))
ORDER BY 1
