-- open: the latest moment seen before.
SELECT seen FROM clock WHERE one = 1
