use super::*;

#[track_caller]
fn check<T: Code + PartialEq + std::fmt::Debug>(words: &[T], codes: &[i16]) {
    assert_eq!(
        words.iter().map(|word| word.code()).collect::<Vec<_>>(),
        codes
    );
    for word in words {
        assert_eq!(T::from_code(word.code()).as_ref(), Some(word));
    }
    assert_eq!(T::from_code(99), None);
    assert_eq!(T::from_code(-1), None);
}

/// The same numbers as in the embedded store.
#[test]
fn numbers_of_words_never_change() {
    check(&JobState::ALL, &[0, 1, 2, 3, 4]);
    check(&RunState::ALL, &[0, 1, 2, 3, 4, 5, 6]);
    check(&RunKind::ALL, &[0, 1, 2]);
    check(&Lane::ALL, &[0, 1, 2]);
    check(&Outcome::ALL, &[0, 1, 2, 3, 4]);
    check(
        &Reason::ALL,
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13],
    );
    let asks = [
        Ask::TakeBack,
        Ask::TooLate,
        Ask::Cancel(Reason::Overlap),
        Ask::Cancel(Reason::Asked),
        Ask::Cancel(Reason::Invalid),
    ];
    check(&asks, &[1, 2, 16, 24, 29]);
}

#[test]
fn any_text_survives() {
    for sample in [
        "",
        "plain",
        "\0",
        "a\0b\u{1}c",
        "\u{1}0",
        "\u{1}1\0\u{1}",
        "\u{1}\u{1}00",
    ] {
        let stored = text(sample);
        assert!(!stored.contains('\0'), "{stored:?}");
        assert_eq!(read_text(stored.into_owned()), sample);
    }
}
