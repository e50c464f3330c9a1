-- Alerts: rules, the ends that they may be about, and where each alert stands.
-- Why: somebody is to hear of a run that failed, also when a node is killed between its end and the message.
-- Locks: history and its days, for a moment, while they get the trigger; no row is rewritten.
-- Nodes of the previous version may go on: the trigger notes what they end, too. No rule is made until all of them are gone.

-- `only_job` is empty unless the rule is about one job; `channel` is the job that delivers.
CREATE TABLE alerts (
    tenant     uuid NOT NULL,
    name       text COLLATE "C" NOT NULL,
    version    integer NOT NULL,
    only_job   uuid,
    channel    uuid NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    doc        bytea NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- Ends that were noted and not considered yet.
CREATE TABLE alert_causes (
    no     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant uuid NOT NULL,
    job    uuid NOT NULL,
    run    uuid NOT NULL,
    state  smallint NOT NULL,
    reason smallint,
    count  bigint NOT NULL,
    at     bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- `step` counts the writes of a row: whoever writes it names the one before.
CREATE TABLE alert_states (
    tenant   uuid NOT NULL,
    alert    text COLLATE "C" NOT NULL,
    job      uuid NOT NULL,
    step     integer NOT NULL,
    firing   boolean NOT NULL,
    since    bigint NOT NULL,
    run      uuid NOT NULL,
    state    smallint NOT NULL,
    reason   smallint,
    at       bigint NOT NULL,
    causes   bigint NOT NULL,
    sent     integer NOT NULL,
    send_at  bigint,
    ended_by uuid,
    ended_at bigint,
    PRIMARY KEY (tenant, alert, job)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);

CREATE INDEX alert_states_due ON alert_states (send_at) WHERE send_at IS NOT NULL;

-- An end is noted in the transaction that writes it, whoever does. Which ends a rule may be about is said in `model/src/alert.rs`:
-- not 3, succeeded; and not for the reasons 2 paused, 8 requested, 9 replaced, 10 job deleted, 12 calendar. An end that
-- succeeded calls no function.
CREATE FUNCTION note_alert_cause() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM alerts a WHERE a.tenant = NEW.tenant AND (a.only_job IS NULL OR a.only_job = NEW.job)) THEN
        INSERT INTO alert_causes (tenant, job, run, state, reason, count, at)
        VALUES (NEW.tenant, NEW.job, NEW.id, NEW.state, NEW.reason, coalesce(NEW.stretch_count, 1),
                coalesce(NEW.settled_at, now_ms()));
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER history_causes AFTER INSERT OR UPDATE OF state ON history FOR EACH ROW
WHEN (NEW.state <> 3 AND (NEW.reason IS NULL OR NEW.reason NOT IN (2, 8, 9, 10, 12)))
EXECUTE FUNCTION note_alert_cause();
