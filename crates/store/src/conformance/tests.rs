//! The suite, tried on the reference store, and the list against the files.

use super::Subject;

mod mem {
    use super::Subject;

    crate::conformance_suite!(async || Subject::mem().await);
}

macro_rules! names {
    ($all:expr, $($group:ident { $($promise:ident)* })*) => {
        $all.extend([$(
            (
                include_str!(concat!(stringify!($group), ".rs")),
                &[$(stringify!($promise)),*] as &[&str],
            ),
        )*])
    };
}

#[test]
fn every_promise_is_listed() {
    let mut groups: Vec<(&str, &[&str])> = Vec::new();
    crate::conformance_promises!(names, groups);
    for (source, listed) in &groups {
        let written: Vec<_> = source
            .lines()
            .filter_map(|line| line.strip_prefix("pub async fn ")?.split_once('('))
            .map(|(name, _)| name)
            .collect();
        assert_eq!(&written, listed);
    }
    let count: usize = groups.iter().map(|(_, listed)| listed.len()).sum();
    assert!(count > 100, "{count}");
}
