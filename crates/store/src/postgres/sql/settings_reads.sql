-- every new connection of those who read at the wish of a client, after the other settings.
SET statement_timeout = '{patience}';
