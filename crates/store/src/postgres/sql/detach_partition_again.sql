-- retain: what another try has begun is brought to its end.
ALTER TABLE history DETACH PARTITION history_{day} FINALIZE;
