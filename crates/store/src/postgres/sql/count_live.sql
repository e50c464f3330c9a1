-- count_live: runs that have not ended.
SELECT count(*) FROM live
