-- Calendar zones: calendars are found by the zone they are meant in.
-- Why: when the tables of a zone change, the slots of jobs move whose calendar keeps to that zone.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

-- None for a calendar that keeps to its jobs' zones or to UTC, and for one that cannot be read.
ALTER TABLE calendars ADD COLUMN zone TEXT AS
    (CASE WHEN json_valid(CAST(doc AS TEXT)) THEN nullif(json_extract(CAST(doc AS TEXT), '$.zone'), 'UTC') END) VIRTUAL;

CREATE INDEX calendars_zone ON calendars (zone) WHERE zone IS NOT NULL;
