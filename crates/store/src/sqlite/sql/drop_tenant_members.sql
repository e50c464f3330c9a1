-- drop_tenant: nobody belongs to it any more.
DELETE FROM members WHERE tenant = ?1
