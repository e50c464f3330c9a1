-- A change is entered in the transaction that makes it.
INSERT INTO audit (at, tenant, actor, key, address, request, action, subject, before, after)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
