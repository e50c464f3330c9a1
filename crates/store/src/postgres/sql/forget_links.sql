-- put_link: those that have expired.
DELETE FROM console_links WHERE expires_at <= $1
