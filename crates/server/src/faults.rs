//! What may be wrong with calendars, alerts, keys, tenants, replays and secrets, as the problems that clients see.

use crate::ops::alerts::AlertFault;
use crate::ops::replays::ReplayFault;
use crate::ops::{CalendarFault, KeyFault, SecretFault, TenantFault};
use crate::problem::{Kind, Problem, version_conflict};

impl From<CalendarFault> for Problem {
    fn from(fault: CalendarFault) -> Self {
        let detail = fault.to_string();
        match fault {
            CalendarFault::Missing(_) => Self::new(Kind::CalendarNotFound, detail).at("name"),
            CalendarFault::Exists(name) => {
                let detail = format!("{detail}: PUT /v1/calendars/{name} changes it");
                Self::new(Kind::CalendarExists, detail).at("name")
            }
            CalendarFault::Stands(found) => Self::new(Kind::VersionConflict, detail)
                .at("If-None-Match")
                .with("version", found.0),
            CalendarFault::VersionConflict(found) => version_conflict(&detail, found),
            CalendarFault::NothingToMatch(_) => {
                Self::new(Kind::VersionConflict, detail).at("If-Match")
            }
            CalendarFault::InUse { jobs, count, .. } => {
                let names: Vec<String> = jobs.iter().map(ToString::to_string).collect();
                let more = if count > names.len() as u64 {
                    " and others"
                } else {
                    ""
                };
                let detail = format!("{detail}: {}{more}; change them first", names.join(", "));
                Self::new(Kind::CalendarInUse, detail)
                    .with("count", count)
                    .with("jobs", names)
            }
            CalendarFault::Full => {
                let detail = format!("{detail}: delete one that no job goes by");
                Self::new(Kind::CalendarsFull, detail)
            }
        }
    }
}

impl From<KeyFault> for Problem {
    fn from(fault: KeyFault) -> Self {
        let detail = fault.to_string();
        match fault {
            KeyFault::Missing => Self::new(Kind::AccessKeyNotFound, detail).at("id"),
            KeyFault::Full => {
                let detail =
                    format!("{detail}: revoke some; those that ended are forgotten after 30 days");
                Self::new(Kind::AccessKeysFull, detail)
            }
            KeyFault::LastRoot => {
                let detail = format!("{detail}: make another before you revoke it");
                Self::new(Kind::LastRootKey, detail)
            }
            KeyFault::Above { role, own } => Self::new(Kind::RoleInsufficient, detail)
                .at("role")
                .with("role", own.as_str())
                .with("needed", role.as_str()),
        }
    }
}

impl From<TenantFault> for Problem {
    fn from(fault: TenantFault) -> Self {
        let detail = fault.to_string();
        match fault {
            TenantFault::Missing(_) => Self::new(Kind::TenantNotFound, detail).at("name"),
            TenantFault::Unknown(_) => {
                let detail = format!("{detail}: leave it out for your own");
                Self::new(Kind::TenantNotFound, detail).at("tenant")
            }
            TenantFault::Exists(_) => {
                let detail = format!("{detail}: choose another name");
                Self::new(Kind::TenantExists, detail).at("name")
            }
            TenantFault::Full => Self::new(Kind::TenantsFull, format!("{detail}: delete one")),
            TenantFault::Fixed => {
                let detail = format!("{detail}: it cannot be deleted");
                Self::new(Kind::TenantInUse, detail)
            }
            TenantFault::InUse { what, .. } => {
                let detail = format!("{detail}: delete or revoke them first");
                Self::new(Kind::TenantInUse, detail).with("has", what)
            }
        }
    }
}

impl From<AlertFault> for Problem {
    fn from(fault: AlertFault) -> Self {
        let detail = fault.to_string();
        match fault {
            AlertFault::Missing(_) => Self::new(Kind::AlertNotFound, detail).at("name"),
            AlertFault::NoTenant => Self::new(Kind::AlertNotFound, detail),
            AlertFault::Full => Self::new(Kind::AlertsFull, format!("{detail}: delete one")),
            AlertFault::Busy => {
                let detail = format!("{detail}: look at its deliveries, and wait for some to end");
                Self::new(Kind::AlertBusy, detail)
            }
        }
    }
}

impl From<ReplayFault> for Problem {
    fn from(fault: ReplayFault) -> Self {
        let detail = fault.to_string();
        match fault {
            ReplayFault::Missing => Self::new(Kind::ReplayNotFound, detail).at("id"),
            ReplayFault::NoTenant => Self::new(Kind::ReplayNotFound, detail),
            ReplayFault::Full => {
                let detail = format!("{detail}: wait for one to end, or cancel one");
                Self::new(Kind::ReplaysFull, detail)
            }
        }
    }
}

impl From<SecretFault> for Problem {
    fn from(fault: SecretFault) -> Self {
        let detail = fault.to_string();
        match fault {
            SecretFault::Missing(_) => Self::new(Kind::SecretNotFound, detail).at("name"),
            SecretFault::Exists(name) => {
                let detail = format!("{detail}: PUT /v1/secrets/{name} changes it");
                Self::new(Kind::SecretExists, detail).at("name")
            }
            SecretFault::Full => Self::new(Kind::SecretsFull, format!("{detail}: delete one")),
            SecretFault::SigningMissing => Self::new(Kind::SigningSecretNotFound, detail).at("id"),
            SecretFault::SigningFull => {
                let detail = format!("{detail}: delete the one that receivers need no more");
                Self::new(Kind::SigningSecretsFull, detail)
            }
            SecretFault::NoTenant => Self::new(Kind::SecretNotFound, detail),
            SecretFault::NoMasterKey => {
                let detail = format!("{detail}: start it with --master-key-file");
                Self::new(Kind::MasterKeyMissing, detail)
            }
            SecretFault::Closed(..) => {
                let detail = format!("{detail}; write its value again");
                Self::new(Kind::MasterKeyMissing, detail)
            }
        }
    }
}
