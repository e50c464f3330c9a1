-- put_secret, drop_secret, rewrap_secrets, drop_tenant: one more change.
UPDATE secret_changes SET change = change + 1 WHERE one = 1
