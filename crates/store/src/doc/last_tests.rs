use model::hex::to_hex;
use model::{AttemptNo, Report, Timestamp};

use super::*;

fn attempt(report: Report) -> Attempt {
    let at = Timestamp::from_millis(1_700_000_000_000);
    Attempt::new(AttemptNo(1), Some(at), at, report)
}

fn exchange(peer: &str) -> Exchange {
    Exchange {
        peer: Some(peer.parse().unwrap()),
        times: Times {
            connect: Some(Duration::from_micros(312)),
            tls: None,
            first_byte: Some(Duration::from_micros(1_480)),
            total: Some(Duration::from_micros(1_502)),
        },
        ..Exchange::default()
    }
}

/// Packed and unpacked it is what it was, and in these bytes.
#[track_caller]
fn check(earlier: &[Attempt], last: &Attempt, expected: &str) {
    let bytes = encode_with_last(earlier, Some(last)).unwrap().unwrap();
    assert_eq!(to_hex(&bytes), expected);
    let mut bare = Attempt {
        truncated: false,
        exchange: None,
        cost: None,
        ..last.clone()
    };
    let read = decode_with_last(Some(&bytes), Some(&mut bare)).unwrap();
    assert_eq!((&read[..], &bare), (earlier, last));
    // Cut anywhere, it is refused and nothing else.
    for end in 1..bytes.len() {
        let _ = decode_with_last(bytes.get(..end), Some(&mut bare));
    }
}

#[test]
fn what_is_kept_of_an_exchange_is_packed_and_never_changes() {
    let plain = attempt(Report::succeeded().with_exchange(exchange("127.0.0.1:8080")));
    check(&[], &plain, "016a7f0000011f90b802c80bde0b");
    let mut report = Report::succeeded().with_exchange(Exchange {
        headers: vec![("etag".to_owned(), "é".to_owned())],
        note: Some("n".to_owned()),
        ..exchange("[::1]:443")
    });
    report.truncated = true;
    let full = attempt(report);
    let hex = "01ed0000000000000000000000000000000101bbb802c80bde0b01046574616702c3a9016e";
    check(&[], &full, hex);
    let earlier = attempt(Report::failed("no").with_exchange(exchange("127.0.0.1:1")));
    let bytes = encode_with_last(std::slice::from_ref(&earlier), Some(&full)).unwrap();
    let mut last = attempt(Report::succeeded());
    let read = decode_with_last(bytes.as_deref(), Some(&mut last)).unwrap();
    assert_eq!((read, last), (vec![earlier], full));
}

#[test]
fn what_a_command_took_is_packed_and_never_changes() {
    let cost = Cost {
        cpu: Duration::from_micros(1_502),
        memory_max: 4_096,
        io: None,
    };
    let plain = attempt(Report::succeeded().with_cost(Some(cost)));
    check(&[], &plain, "03de0b8020");
    let mut cut = plain.clone();
    cut.truncated = true;
    check(&[], &cut, "03de0b80200101");
    let io = Some(Io {
        read: 4_096,
        written: 0,
    });
    let with_io = attempt(Report::succeeded().with_cost(Some(Cost { io, ..cost })));
    check(&[], &with_io, "04de0b8020802000");
    let plain = with_io;
    let earlier = attempt(Report::failed("no").with_cost(plain.cost.as_deref().copied()));
    let bytes = encode_with_last(std::slice::from_ref(&earlier), Some(&plain)).unwrap();
    let mut last = attempt(Report::succeeded());
    let read = decode_with_last(bytes.as_deref(), Some(&mut last)).unwrap();
    assert_eq!((read, last), (vec![earlier], plain));
    for cut in [&[COST, 0x80][..], &[COST_IO, 1, 1, 1]] {
        assert!(decode_with_last(Some(cut), None).is_err());
    }
}

#[test]
fn an_attempt_without_an_exchange_takes_no_room() {
    let plain = attempt(Report::succeeded());
    assert_eq!(encode_with_last(&[], Some(&plain)), Ok(None));
    let json = encode_with_last(std::slice::from_ref(&plain), Some(&plain)).unwrap();
    assert_eq!(json.as_deref().and_then(<[u8]>::first), Some(&b'['));
}

#[test]
fn what_is_no_packed_form_is_refused() {
    for bytes in [
        &[MARK][..],
        &[MARK, TOTAL, 0x80],
        &[MARK, TEXTS, 1, 9, b'a'],
    ] {
        assert!(decode_with_last(Some(bytes), None).is_err(), "{bytes:?}");
    }
}
