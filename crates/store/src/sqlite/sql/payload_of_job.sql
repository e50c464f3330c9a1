-- payloads: a job's own, if it is still at the version named.
SELECT d.payload FROM jobs j JOIN defs d ON d.id = j.id WHERE j.id = ?1 AND j.version = ?2
