-- open: an index of a day becomes a part of that of all of history.
ALTER INDEX {all} ATTACH PARTITION {name}
