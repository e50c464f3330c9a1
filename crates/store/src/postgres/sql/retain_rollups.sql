-- retain: rollups that were kept long enough.
DELETE FROM rollups r
USING (SELECT tenant, step, at, counter FROM rollups WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED) o
WHERE r.tenant = o.tenant AND r.step = o.step AND r.at = o.at AND r.counter = o.counter
