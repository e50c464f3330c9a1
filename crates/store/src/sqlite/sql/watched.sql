-- What the writer knows by heart: whose ends are noted, and of which job if it is one.
SELECT tenant, only_job FROM alerts
