-- retain: a day that has left history and still has a table.
SELECT CAST(substr(name, 6) AS INTEGER) FROM sqlite_schema WHERE type = 'table' AND name GLOB 'gone_[0-9]*' LIMIT 1
