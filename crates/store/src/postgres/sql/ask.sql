-- change_job, cancel_run, fire, withdraw: marks for holders.
UPDATE live l SET ask = n.ask FROM unnest($1::uuid[], $2::smallint[]) n(id, ask) WHERE l.id = n.id
