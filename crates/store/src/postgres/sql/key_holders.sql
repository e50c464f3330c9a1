-- create_jobs, change_job: who has keys.
SELECT d.tenant, d.key, d.id
FROM unnest($1::uuid[], $2::text[]) n(tenant, key)
     JOIN defs d ON d.tenant = n.tenant AND d.key = n.key AND d.key IS NOT NULL AND NOT d.gone
