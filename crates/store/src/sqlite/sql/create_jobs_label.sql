-- create_jobs, change_job: one label.
INSERT OR IGNORE INTO labels (tenant, name, value, job) VALUES (?1, ?2, ?3, ?4)
