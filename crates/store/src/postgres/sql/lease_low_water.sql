-- lease: the low-water mark of all that a presence has.
SELECT coalesce(low_water, 0), taken FROM presences WHERE no = $1
