-- drop_sealed: entries of a segment, between two of its gaps.
DELETE FROM audit WHERE seq BETWEEN ?1 AND ?2
