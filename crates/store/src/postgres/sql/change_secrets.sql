-- put_secret, drop_secret, rewrap_secrets, drop_tenant: one more change. It comes first: whoever changes secrets waits for the one before.
UPDATE secret_changes SET change = change + 1 WHERE one = true
