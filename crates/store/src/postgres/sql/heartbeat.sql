-- heartbeat: the views in which the attempt is handed over already. It is trusted again, unless it is to end;
-- whoever's clock is behind takes no trust away. (Written so that only the runs can be looked up: many more may be trusted.)
UPDATE handed h SET beaten_at = $4, progress = coalesce(n.progress, h.progress),
    trusted_until = CASE WHEN h.cancelled THEN h.trusted_until
                         ELSE greatest(h.trusted_until, least($4::bigint + h.beat_within, h.timeout_at)) END
FROM unnest($1::uuid[], $2::integer[], $3::text[]) n(run, attempt, progress)
WHERE h.run = ANY(ARRAY[n.run]) AND h.attempt = n.attempt AND NOT coalesce(h.trusted_until IS NULL, false)
RETURNING h.run, h.cancelled, h.trusted_until
