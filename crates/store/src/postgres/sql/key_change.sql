-- keys_since: the latest change.
SELECT change FROM key_changes WHERE one = true
