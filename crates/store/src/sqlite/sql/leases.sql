-- open, and after a rollback: every lease.
SELECT shard, holder, epoch, low_water FROM leases
