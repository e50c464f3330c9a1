-- settle and others: a day that is made while there are several tenants has an index for the one that is always there: few of
-- its runs may be that tenant's.
CREATE INDEX history_{day}_default ON history_{day} (id) WHERE tenant = '00000000-0000-0000-0000-000000000000';
