-- payloads: those of jobs, and the versions they are of.
SELECT j.id, j.version, d.payload FROM jobs j JOIN defs d ON d.id = j.id WHERE j.id = ANY($1::uuid[])
