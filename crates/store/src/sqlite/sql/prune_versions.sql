-- change_job: of each job so many versions are kept.
DELETE FROM job_versions WHERE job = ?1 AND version <= (
    SELECT version FROM job_versions WHERE job = ?1 ORDER BY version DESC LIMIT 1 OFFSET ?2)
