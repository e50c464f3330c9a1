-- secrets_not_under: of all tenants, those that a rewrap has still to do.
SELECT {secret} FROM secrets WHERE (tenant, name) > ($2, $3) AND master_key <> $1 ORDER BY tenant, name LIMIT $4
