-- drop_sealed: the seals of segments.
DELETE FROM audit_seals WHERE number = ANY($1::bigint[])
