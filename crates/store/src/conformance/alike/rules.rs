//! Calendars and zones: from what is to happen to the call, and from the call to its answer.

use model::schedule::{DateRange, Day, Weekly, Yearly, Zone};
use model::{Calendar, CalendarName, JobId, TenantId, Timestamp, Version};

use super::calls::{Call, RuleCall};
use super::ops::RuleOp;
use super::people::{Known, ZONE};
use super::world::{STRANGER, World};
use crate::Rule;

const NAMES: [&str; 3] = ["a", "b", "c"];

fn name(number: u8) -> CalendarName {
    let name = NAMES.get(usize::from(number)).unwrap_or(&"none");
    CalendarName::new(name).unwrap()
}

/// A calendar that says something of the days around the beginning of time, and of every later week.
fn calendar(number: u8, holds: u8, version: Version, now: Timestamp) -> Calendar {
    let weekly = |texts: &[&str]| texts.iter().map(|it| Weekly::parse(it).unwrap()).collect();
    let mut calendar = Calendar {
        version,
        weekly: weekly(&["MON-SUN 03:00-05:00"]),
        ..Calendar::new(name(number), now)
    };
    match holds {
        0 => calendar.weekly = weekly(&["TUE 22:00-22:20", "WED"]),
        1 => calendar.weekly = weekly(&["MON-SUN 22:14-22:16", "MON-SUN 00:00-12:00"]),
        2 => calendar.dates = vec![Day::parse("2023-11-15").unwrap()],
        3 => {
            calendar.yearly = vec![Yearly::parse("11-14").unwrap()];
            calendar.zone = Some(Zone::get(ZONE).unwrap());
        }
        4 => {
            let range = DateRange::parse("2023-11-14T22:15/2023-11-16T06:00");
            calendar.ranges = vec![range.unwrap()];
        }
        _ => calendar.note = Some("nothing \"else\"".to_owned()),
    }
    calendar
}

fn tenant(ours: bool) -> TenantId {
    if ours { TenantId::DEFAULT } else { STRANGER }
}

impl World {
    /// A tenant's calendars as they stand.
    pub(super) async fn calendars(&self, tenant: TenantId) -> Known {
        let listed = self.store.list_calendars(tenant, None, 100).await.unwrap();
        let named = listed.into_iter().map(|it| it.calendar);
        named.map(|it| (it.name.clone(), it)).collect()
    }

    pub(super) async fn rule_call(&mut self, op: RuleOp) -> Call {
        let call = match op {
            RuleOp::Put {
                name: number,
                holds,
                fresh,
                ours,
            } => {
                let known = self.calendars(tenant(ours)).await;
                let stands = known.get(&name(number)).map(|it| it.version);
                let before = if fresh { stands } else { Some(Version(2)) };
                let version = before.map_or(Version::FIRST, Version::next);
                let calendar = calendar(number, holds, version, self.now());
                RuleCall::Put(tenant(ours), Box::new(calendar), before)
            }
            RuleOp::Drop {
                name: number,
                fresh,
                ours,
            } => {
                let before = Some(Version(2)).filter(|_| !fresh);
                RuleCall::Drop(tenant(ours), name(number), before)
            }
            RuleOp::List { after, limit } => {
                RuleCall::List(TenantId::DEFAULT, name(after), usize::from(limit))
            }
            RuleOp::Changed => RuleCall::Changed,
            RuleOp::Under { rule, after, limit } => {
                let after = self.job(after, false).await.map(|job| job.id);
                RuleCall::Under(self.rule(rule).await, after, usize::from(limit))
            }
            RuleOp::Applied { rule, fresh } => match self.rule_to_apply(rule, fresh).await {
                Some(rule) => RuleCall::Applied(rule),
                None => return Call::Nothing,
            },
        };
        Call::Rule(call)
    }

    /// A rule by number, as it stands.
    async fn rule(&self, number: u8) -> Rule {
        if number >= 4 {
            return Rule::Zone {
                name: ZONE.to_owned(),
                digest: Zone::get(ZONE).unwrap().digest(),
                known: 1,
            };
        }
        let tenant = tenant(number < 3);
        let name = name(number % 3);
        let known = self.calendars(tenant).await;
        let version = known.get(&name).map_or(Version(9), |it| it.version);
        Rule::Calendar {
            tenant,
            name,
            version,
            doubts: 0,
        }
    }

    /// One that has changed; or one as it never was, if anything is under it.
    async fn rule_to_apply(&self, number: u8, fresh: bool) -> Option<Rule> {
        if fresh {
            let changed = self.store.rules_changed().await.unwrap();
            let index = usize::from(number) % changed.len().max(1);
            return changed.into_iter().nth(index);
        }
        let rule = self.rule(number).await;
        let under = self.store.jobs_under(&rule, None, 1).await.unwrap();
        under.first()?;
        Some(match rule {
            Rule::Calendar { tenant, name, .. } => Rule::Calendar {
                tenant,
                name,
                version: Version(1),
                doubts: 0,
            },
            Rule::Zone { name, digest, .. } => Rule::Zone {
                name,
                digest: 1,
                known: digest,
            },
        })
    }

    pub(super) async fn make_rule(&mut self, call: &RuleCall) -> String {
        let store = self.store.clone();
        match call {
            RuleCall::Put(tenant, calendar, before) => {
                self.show(store.put_calendar(*tenant, calendar, *before).await)
            }
            RuleCall::Drop(tenant, name, before) => {
                self.show(store.drop_calendar(*tenant, name, *before).await)
            }
            RuleCall::List(tenant, after, limit) => {
                self.show(store.list_calendars(*tenant, Some(after), *limit).await)
            }
            RuleCall::Changed => self.show(in_order(store.rules_changed().await.unwrap())),
            RuleCall::Under(rule, after, limit) => {
                self.show(store.jobs_under(rule, *after, *limit).await)
            }
            RuleCall::Applied(rule) => self.show(store.rule_applied(rule).await),
        }
    }

    pub(super) async fn dump_rules(&self, all: &mut Vec<String>) {
        let store = &self.store;
        let names: Vec<_> = (0..4).map(name).collect();
        for tenant in [TenantId::DEFAULT, STRANGER] {
            all.push(self.show(store.list_calendars(tenant, None, 100).await));
            all.push(self.show(store.get_calendars(tenant, &names).await));
        }
        all.push(self.show(in_order(store.rules_changed().await.unwrap())));
        for number in 0..5 {
            let rule = self.rule(number).await;
            let under: Vec<(TenantId, JobId)> = store.jobs_under(&rule, None, 100).await.unwrap();
            all.push(self.show(under));
        }
    }
}

/// In what order changes are named is a store's own affair.
fn in_order(mut rules: Vec<Rule>) -> Vec<Rule> {
    rules.sort_by_key(|rule| format!("{rule:?}"));
    rules
}
