-- count_standing: live runs that are alike, of so many at most.
SELECT tenant, lane, state, waiting, count(*) FROM (SELECT tenant, lane, state, waiting FROM live LIMIT $1) l
GROUP BY tenant, lane, state, waiting
