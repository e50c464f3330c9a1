-- settle and others: a run has ended long after the day that it belongs to, and keeps it.
UPDATE ranges SET kept_from = ?2 WHERE day = ?1
