-- open: how many runs are alive; counted on in memory from there.
SELECT count(*) FROM live
