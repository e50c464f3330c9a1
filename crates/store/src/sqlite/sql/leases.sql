-- open, and after a rollback: every lease.
SELECT shard, holder, epoch FROM leases
