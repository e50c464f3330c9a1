-- drop_sealed: and its seal.
DELETE FROM audit_seals WHERE number = ?1
