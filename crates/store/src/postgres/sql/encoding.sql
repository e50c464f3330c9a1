-- open: how the database holds text.
SELECT current_setting('server_encoding')
