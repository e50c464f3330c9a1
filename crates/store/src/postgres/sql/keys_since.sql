-- keys_since: what was created or revoked after a change.
SELECT {key} FROM keys WHERE change > $1
