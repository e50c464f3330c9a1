-- drop_unsealed: of the oldest entries after the last segment, those that were kept long enough.
WITH oldest AS MATERIALIZED (
    SELECT seq FROM audit
    WHERE seq > (SELECT coalesce(max(to_seq), 0) FROM audit_seals)
    ORDER BY seq LIMIT $1
)
DELETE FROM audit a USING oldest o WHERE a.seq = o.seq AND a.at <= $2
RETURNING a.seq
