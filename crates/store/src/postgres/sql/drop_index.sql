-- open: what is left of an index that was not made to its end.
DROP INDEX CONCURRENTLY IF EXISTS {name}
