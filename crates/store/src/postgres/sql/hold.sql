-- fire, claim, settle, withdraw, mark_running: a presence that lives, and that nobody ends before we are done. Beats go
-- on meanwhile. Its number, and the time.
SELECT no, coalesce($2::bigint, now_ms()) FROM presences WHERE id = $1 AND ended_at IS NULL FOR KEY SHARE
