-- rules_changed: zones that jobs follow.
SELECT name, digest FROM zones ORDER BY name
