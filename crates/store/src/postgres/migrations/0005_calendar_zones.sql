-- Calendar zones: calendars are found by the zone they are meant in.
-- Why: when the tables of a zone change, the slots of jobs move whose calendar keeps to that zone.
-- Locks: calendars against writers while the index is made, which is a moment; no row is rewritten.
-- Nodes of the previous version may go on: the zone is read from what they write.

-- None for a calendar that keeps to its jobs' zones or to UTC, and for one that cannot be read.
CREATE FUNCTION calendar_zone(doc bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
$$ BEGIN
    RETURN nullif(convert_from(doc, 'UTF8')::json ->> 'zone', 'UTC');
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

CREATE INDEX calendars_zone ON calendars (calendar_zone(doc)) WHERE calendar_zone(doc) IS NOT NULL;
