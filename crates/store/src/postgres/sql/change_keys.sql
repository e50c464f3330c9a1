-- create_key, create_first_key, revoke_key: the number of this change. It comes first: whoever changes keys waits for the one before.
UPDATE key_changes SET change = change + 1 WHERE one = true RETURNING change
