-- put_seal: only the one after the last; of two who try at once the key lets one through.
INSERT INTO audit_seals ({seal})
SELECT $1::bigint, $2, $3, $4, $5, $6, $7, $8, $9, $10
WHERE (SELECT coalesce(max(number), 0) FROM audit_seals) = $1::bigint - 1
ON CONFLICT (number) DO NOTHING
