-- Changes are entered in the transaction that makes them.
INSERT INTO audit ({audit})
SELECT coalesce($1::bigint, now_ms()), tenant, actor, key, address, request, action, subject, before, after
FROM unnest($2::uuid[], $3::text[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[])
     n(tenant, actor, key, address, request, action, subject, before, after)
