//! The fleet's database: durable, private, with a synchronous standby until that takes over.

use store::postgres::server::{Mode, PgServer, Stop};

pub struct Database {
    primary: PgServer,
    standby: Option<PgServer>,
}

impl Database {
    /// The error says which programs are missing.
    pub fn start() -> Result<Self, String> {
        let primary = PgServer::private(Mode::Durable).map_err(|error| error.to_string())?;
        let mut database = Self {
            primary,
            standby: None,
        };
        database.follow();
        Ok(database)
    }

    pub fn port(&self) -> u16 {
        self.primary.port()
    }

    /// Has its commits wait for a standby, if there is none yet.
    pub fn follow(&mut self) {
        if self.standby.is_none() {
            self.standby = Some(self.primary.standby().unwrap());
        }
    }

    pub fn restart(&self, how: Stop) {
        self.primary.stop(how).unwrap();
        self.primary.start().unwrap();
    }

    /// The old primary falls and is gone for good; the standby takes over, on another port.
    pub fn fail_over(&mut self) {
        let standby = self.standby.take().expect("a standby that follows");
        self.primary.stop(Stop::Immediate).unwrap();
        standby.promote().unwrap();
        self.primary = standby;
    }

    /// Somebody else keeps a table to himself for so many seconds.
    pub fn lock(&self, table: &str, seconds: u64) {
        let lock = format!(
            "BEGIN; LOCK TABLE punctual.{table} IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep({seconds}); COMMIT"
        );
        self.primary.ask(&lock).unwrap();
    }

    /// What the database itself says; for the record of a run that went wrong.
    pub fn ask(&self, query: &str) -> String {
        let answer = self.primary.ask(query);
        answer.unwrap_or_else(|error| format!("no answer: {error}"))
    }
}
