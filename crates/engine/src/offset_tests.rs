use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::*;

/// A machine whose wall and steady clocks are set by hand, in microseconds.
#[derive(Default)]
struct Machine {
    wall: AtomicI64,
    steady: AtomicU64,
}

impl Machine {
    fn pass(&self, micros: i64) {
        self.wall.fetch_add(micros, Ordering::SeqCst);
        self.steady
            .fetch_add(micros.unsigned_abs(), Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for Machine {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.wall.load(Ordering::SeqCst) / 1_000)
    }

    fn now_micros(&self) -> i64 {
        self.wall.load(Ordering::SeqCst)
    }

    fn uptime(&self) -> Duration {
        Duration::from_micros(self.steady.load(Ordering::SeqCst))
    }

    async fn sleep(&self, _span: Duration) {}

    fn alarm(&self) -> io::Result<Box<dyn Alarm>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

const STORE: i64 = 1_774_742_400_000_000;

/// A node whose wall clock is `off` microseconds off the store's.
fn node(off: i64) -> (Arc<Machine>, OffsetClock) {
    let machine = Arc::new(Machine::default());
    machine.wall.store(STORE + off, Ordering::SeqCst);
    let clock = OffsetClock::new(Arc::clone(&machine) as Arc<dyn Clock>);
    (machine, clock)
}

/// A beat that takes `there` and `back`; answers what the store's clock reads when it is back.
fn beat(machine: &Machine, clock: &OffsetClock, store: i64, there: i64, back: i64) -> i64 {
    let sent = machine.uptime();
    machine.pass(there);
    let read = store + there;
    machine.pass(back);
    clock.observe(sent, machine.uptime(), Duration::ZERO, read);
    read + back
}

#[test]
fn what_the_store_takes_for_itself_casts_no_doubt() {
    let (machine, clock) = node(5_000);
    let (there, took, back) = (300, 200_000, 200);
    let sent = machine.uptime();
    machine.pass(there + took + back);
    let read = STORE + there + took / 2;
    let took = Duration::from_micros(took.unsigned_abs());
    clock.observe(sent, machine.uptime(), took, read);
    let store = STORE + there + 200_000 + back;
    let late = store - clock.now_micros();
    assert!((0..=502).contains(&late), "{late}");
    assert!(clock.standing().uncertainty < 0.000_3);
    assert_eq!(clock.standing().unfit(limits::CLOCK_SKEW_MAX), None);
}

#[test]
fn the_time_read_goes_back_only_with_the_stores() {
    let (machine, clock) = node(0);
    let (mut store, mut latest) = (STORE, 0);
    let ways = [(100, 100), (9_000, 10), (10, 9_000), (3_000, 3_000)];
    for (there, back) in ways.into_iter().cycle().take(400) {
        store = beat(&machine, &clock, store, there, back);
        for _ in 0..5 {
            let now = clock.now_micros();
            assert!(now >= latest, "{} µs back", latest - now);
            latest = now;
            machine.pass(200_000);
            store += 200_000;
        }
    }
    let behind = beat(&machine, &clock, store - 60_000_000, 100, 100) - clock.now_micros();
    assert!((0..=300).contains(&behind), "{behind}");
}

#[test]
fn a_wall_clock_that_is_off_does_not_matter() {
    for off in [-30_000_000, 0, 30_000_000] {
        let (machine, clock) = node(off);
        let store = beat(&machine, &clock, STORE, 100, 100);
        let late = store - clock.now_micros();
        assert!((0..=250).contains(&late), "{late}");
        assert!((clock.standing().wall - off as f64 * 1e-6).abs() < 0.001);
    }
}

#[test]
fn the_time_read_is_never_ahead_of_the_store() {
    let ways = [
        (10, 4_000),
        (4_000, 10),
        (200, 100),
        (50_000, 1),
        (1, 50_000),
    ];
    let (machine, clock) = node(123_456);
    let mut store = STORE;
    for (there, back) in ways.into_iter().cycle().take(200) {
        store = beat(&machine, &clock, store, there, back);
        // Rounding of the arithmetic is below two microseconds.
        assert!(clock.now_micros() <= store + 2);
        machine.pass(1_000_000);
        store += 1_000_000;
        assert!(clock.now_micros() <= store + 2);
    }
    assert!(clock.standing().uncertainty < 0.002);
}

#[test]
fn a_step_of_the_stores_clock_is_followed_at_once() {
    let (machine, clock) = node(0);
    let mut store = STORE;
    for _ in 0..20 {
        store = beat(&machine, &clock, store, 100, 100);
    }
    store = beat(&machine, &clock, store - 7_000_000, 3_000, 3_000);
    assert!((store - clock.now_micros()).abs() < 7_000);
}

#[test]
fn who_does_not_know_the_time_does_not_fire() {
    let max = limits::CLOCK_SKEW_MAX;
    let (machine, clock) = node(0);
    assert!(clock.standing().unfit(max).is_some());
    let store = beat(&machine, &clock, STORE, 60_000, 60_000);
    assert!(clock.standing().unfit(max).unwrap().contains("±60 ms"));
    beat(&machine, &clock, store, 100, 100);
    assert_eq!(clock.standing().unfit(max), None);

    let (machine, clock) = node(301_000_000);
    beat(&machine, &clock, STORE, 100, 100);
    assert!(clock.standing().unfit(max).unwrap().contains("301.0 s"));
}

#[test]
fn what_is_known_grows_old() {
    let (machine, clock) = node(0);
    beat(&machine, &clock, STORE, 100, 100);
    machine.pass(600_000_000);
    assert!(clock.standing().unfit(limits::CLOCK_SKEW_MAX).is_some());
}

/// A step of 40 ms hides in answers that take 300 ms each way: nothing distinguishes it from a way that is shorter back.
#[test]
fn a_node_that_hears_only_slow_answers_stops_trusting_what_it_knew() {
    let (machine, clock) = node(0);
    let mut store = beat(&machine, &clock, STORE, 300, 300);
    store -= 40_000;
    for second in 0..20 {
        machine.pass(400_000);
        store = beat(&machine, &clock, store + 400_000, 300_000, 300_000);
        let early = clock.now_micros() - store;
        let unfit = clock.standing().unfit(limits::CLOCK_SKEW_MAX);
        assert!(
            early <= 0 || second < 16,
            "{early} µs early after {second} s"
        );
        assert_eq!(unfit.is_some(), second >= 16, "after {second} s");
    }
    beat(&machine, &clock, store, 300, 300);
    assert_eq!(clock.standing().unfit(limits::CLOCK_SKEW_MAX), None);
}
