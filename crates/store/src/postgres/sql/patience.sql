-- open, retain: how long a statement waits for what others have locked, and how long it takes at most.
SET lock_timeout = '{lock}';
SET statement_timeout = '{statement}';
