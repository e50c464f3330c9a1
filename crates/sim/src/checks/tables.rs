//! Tables of time zones: when all is well again after others came, every job stands where they have it.

use engine::Clock;
use model::{Job, JobState, Timestamp};
use store::{EngineStore, Rule, StoreError};

use super::Broken;
use crate::world::World;

/// Whether a job's next slot is the one that its schedule has next.
fn follows(job: &Job, now: Timestamp) -> bool {
    let schedule = &job.def.schedule;
    // By a clock that may have gone back since.
    let from = now.max(job.updated_at);
    let Some(next) = job.next_slot.filter(|next| next.0 > from) else {
        // What is overdue stays, whoever has scheduled it.
        return true;
    };
    let after = job.slot_last.map_or(from, |last| last.max(from));
    schedule.next_after(after) == Some(next)
}

/// Jobs that still stand where other tables had them.
pub(crate) async fn jobs_follow_their_zones(world: &World) -> Result<Vec<Broken>, StoreError> {
    let check = "jobs_follow_their_zones";
    let now = Clock::now(&world.clock);
    let mut broken = Vec::new();
    for rule in world.mem.rules_changed().await? {
        if let Rule::Zone { name, .. } = rule {
            broken.push(Broken::new(check, format!("{name} has changed")));
        }
    }
    for job in world.mem.all_jobs() {
        let schedule = &job.def.schedule;
        let by_zone = schedule.zone_followed().is_some() && schedule.calendars.is_empty();
        let counts = job.state == JobState::Active && by_zone && !schedule.after_completion();
        if counts && !follows(&job, now) {
            let seen = format!("{} stands at {:?}, now {now}", job.id, job.next_slot);
            broken.push(Broken::new(check, seen));
        }
    }
    Ok(broken)
}
