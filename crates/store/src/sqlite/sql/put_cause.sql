-- settle and others: an end that a rule may be about.
INSERT INTO alert_causes (tenant, job, run, state, reason, count, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
