-- list_secrets: by name.
SELECT {secret} FROM secrets WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3
