use super::*;

fn range(from: i64, to: i64, limit: usize) -> Range {
    Range {
        from: at(from),
        to: at(to),
        cursor: None,
        limit,
    }
}

fn described(page: &SlotPage) -> Vec<String> {
    page.entries.iter().map(describe).collect()
}

/// Two pages, with something happening between them.
fn two_pages(life: &mut Life, limit: usize, between: impl FnOnce(&mut Life)) -> [Vec<String>; 2] {
    let mut range = range(0, 600, limit);
    let first = life.page(range);
    between(life);
    range.cursor = first.next;
    let second = life.page(range);
    [described(&first), described(&second)]
}

#[test]
fn planned_slots_that_are_missed_before_the_next_page_are_on_it() {
    let mut life = Life::of(minutely());
    let [first, second] = two_pages(&mut life, 2, |life| {
        // A node that was away: one stretch from the first slot on.
        let mut def = Definition::clone(&life.job.def);
        def.catch_up.policy = model::CatchUpPolicy::None;
        life.job.def = Arc::new(def);
        life.now = at(320);
        life.fire(false);
    });
    assert_eq!(first, ["60 planned", "120 planned"]);
    assert_eq!(second, ["180-300 x3 missed", "360 planned"]);
}

#[test]
fn planned_slots_that_a_pause_lets_pass_before_the_next_page_are_on_it() {
    let mut life = Life::of(minutely());
    let [first, second] = two_pages(&mut life, 3, |life| {
        life.change(life.job.paused(at(10), None, &me()));
        life.now = at(310);
    });
    assert_eq!(first, ["60 planned", "120 planned", "180 planned"]);
    assert_eq!(second, ["240-300 x2 paused", "360-540 x4 paused"]);
}

#[test]
fn what_an_older_schedule_recorded_is_shown_whole() {
    let mut life = Life::of(minutely());
    let [first, second] = two_pages(&mut life, 2, |life| {
        life.now = at(320);
        let mut def = Definition::clone(&life.job.def);
        def.schedule = Every::parse("7m", at(0), model::schedule::Zone::utc())
            .unwrap()
            .into();
        life.change(life.job.edited(None, def, at(320), &me()));
    });
    assert_eq!(first, ["60 planned", "120 planned"]);
    assert_eq!(second, ["60-300 x5 missed", "420 planned"]);
}

/// A job that was paused for many days, written in pieces.
fn in_pieces(days: i64) -> Life {
    let mut life = Life::of(cron("0 0 * * * *"));
    life.change(life.job.paused(at(1), None, &me()));
    life.now = at(days * 86_400);
    let (job, skips) = life.job.resumed(life.now, false, &me());
    life.job = job;
    for skip in skips {
        let mut first = Some(skip.slots.first);
        while let Some(slot) = first.filter(|slot| *slot <= skip.slots.last) {
            let day = slot.0.as_millis() / 86_400_000 + 1;
            let end = Timestamp::from_millis(day * 86_400_000 - 1);
            let slots = cron("0 0 * * * *").stretch(slot, end.min(skip.slots.last.0));
            let piece = Skip {
                slots,
                ..skip.clone()
            };
            life.write(Run::skipped(&life.job, &piece, life.now));
            first = life.job.def.schedule.next_after(slots.last.0);
        }
    }
    life
}

#[test]
fn pieces_of_one_stretch_are_one_entry() {
    let life = in_pieces(365);
    assert!(life.written.len() >= 365);
    let to = life.now.minus(Duration::from_secs(1));
    for limit in [1, 2, 1_000] {
        let entries = life.list(at(0), to, limit);
        assert_eq!(entries.len(), 1, "{limit}");
        assert_eq!(entries[0].slots.count, 365 * 24);
    }
    // What follows is listed by itself.
    let later = life.now.plus(Duration::from_secs(7_200));
    assert_eq!(life.list(at(0), later, 1).len(), 3);
}

#[test]
fn a_page_does_not_read_without_end() {
    let life = in_pieces(5_000);
    let to = life.now.minus(Duration::from_secs(1));
    let entries = life.list(at(0), to, 1);
    assert_eq!(entries.len(), 2, "a page may end within an entry");
    let count: u64 = entries.iter().map(|entry| entry.slots.count).sum();
    assert_eq!(count, 5_000 * 24);
    let schedule = &life.job.def.schedule;
    let next = schedule.next_after(entries[0].slots.last.0);
    assert_eq!(next, Some(entries[1].slots.first));
}

#[test]
fn what_others_wrote_is_not_taken_for_a_piece() {
    let mut life = Life::of(minutely());
    let skip = |first: i64, note: &str| Skip {
        slots: minutely().stretch(Slot(at(first)), at(first + 60)),
        reason: Reason::Paused,
        note: Some(note.to_owned()),
        actor: me(),
    };
    life.now = at(700);
    life.skip(&[skip(60, "a"), skip(180, "b"), skip(300, "b")]);
    life.now = at(701);
    life.skip(&[skip(420, "b")]);
    life.job.next_slot = Some(Slot(at(540)));
    life.job.slot_last = Some(at(480));
    assert_eq!(
        life.recorded(0, 500),
        [
            "60-120 x2 paused a",
            "180-360 x4 paused b",
            "420-480 x2 paused b"
        ]
    );
}
