-- settle and others: whether there is any tenant but the one that is always there.
SELECT EXISTS (SELECT 1 FROM tenants WHERE id <> '00000000-0000-0000-0000-000000000000')
