use super::*;

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
