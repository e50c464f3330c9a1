-- every new connection: where our tables are, and that nothing waits for ever.
SET search_path TO {schema}, pg_catalog;
SET statement_timeout = '30s';
SET lock_timeout = '5s';
SET idle_in_transaction_session_timeout = '2s';
-- Plans that look rows up one by one: statistics of tables that were empty a moment ago say otherwise, and
-- would be believed until someone counts again.
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_sort = off;
-- A worker takes longer to start than any statement of ours takes by itself.
SET max_parallel_workers_per_gather = 0;
SET jit = off;
SET client_min_messages = warning;
