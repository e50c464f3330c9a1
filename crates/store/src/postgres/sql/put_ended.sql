-- settle and others: runs enter history. A slot that was taken back and decided again has the same name; its later end
-- is what counts.
INSERT INTO history ({history})
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::smallint[], $5::bigint[], $6::uuid[], $7::bigint[],
                     $8::smallint[], $9::smallint[], $10::smallint[], $11::integer[], $12::integer[], $13::integer[],
                     $14::bigint[], $15::bigint[], $16::smallint[], $17::integer[], $18::text[], $19::bytea[],
                     $20::bigint[], $21::bigint[], $22::bytea[], $23::bytea[], $24::text[], $25::text[])
ON CONFLICT (id) DO UPDATE SET {history = excluded}
