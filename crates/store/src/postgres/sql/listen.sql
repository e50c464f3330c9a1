-- hints: everyone with tables in this schema hears everyone else. No hint has to outlive a crash, and nothing
-- else is written here, so no commit waits for the disk.
SET synchronous_commit = off;
LISTEN {schema};
