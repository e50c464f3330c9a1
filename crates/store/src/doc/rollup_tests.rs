use std::time::Duration;

use super::*;

#[test]
fn a_rollup_reads_back_and_its_stored_form_stays() {
    use model::rollup::Count;
    let mut rollup = model::Rollup::default();
    for count in [
        Count::Fired(3),
        Count::Ended(model::RunState::Succeeded, 2),
        Count::Ended(model::RunState::Dead, 1),
        Count::Ended(model::RunState::Cancelled, 4),
        Count::Retried,
        Count::Late,
        Count::Skipped(model::Reason::Missed, 40),
        Count::Skipped(model::Reason::Overlap, 2),
        Count::Lateness(Duration::ZERO),
        Count::Lateness(Duration::from_micros(1_400)),
        Count::Lateness(Duration::from_micros(1_410)),
        Count::Took(Duration::MAX),
    ] {
        rollup.count(count);
    }
    let golden = include_str!("golden/rollup.json").trim_end();
    let stored = encode_rollup(&rollup).unwrap();
    assert_eq!(String::from_utf8(stored).unwrap(), golden);
    assert_eq!(decode_rollup(golden.as_bytes()).unwrap(), rollup);
    assert_eq!(encode_rollup(&model::Rollup::default()).unwrap(), b"{}");
}

#[test]
fn what_a_newer_node_counts_besides_is_left_out() {
    let stored = br#"{"fired":1,"moons":7,"skipped":{"eclipse":3},"lateness":[[99,1]]}"#;
    let read = decode_rollup(stored).unwrap();
    let mut expected = model::Rollup::default();
    expected.fired = 1;
    assert_eq!(read, expected);
}
