//! Whether JSON means something to every reader. The grammar allows numbers that no double holds and halves of
//! characters; many readers give up on a whole document for one of them, so that one job's payload would
//! make every listing it stands in unreadable.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// Says what cannot be read, and where in the text.
pub(super) fn check(text: &str) -> Result<(), String> {
    serde_json::from_str::<Sound>(text)
        .map(|Sound| ())
        .map_err(|error| error.to_string())
}

/// Any value, read whole and kept nowhere.
struct Sound;

impl<'de> Deserialize<'de> for Sound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Walk)
    }
}

struct Walk;

impl<'de> Visitor<'de> for Walk {
    type Value = Sound;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Sound, E> {
        Ok(Sound)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Sound, E> {
        Ok(Sound)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Sound, E> {
        Ok(Sound)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Sound, E> {
        Ok(Sound)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Sound, E> {
        Ok(Sound)
    }

    fn visit_str<E>(self, _: &str) -> Result<Sound, E> {
        Ok(Sound)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Sound, A::Error> {
        while let Some(Sound) = list.next_element()? {}
        Ok(Sound)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Sound, A::Error> {
        while let Some((Sound, Sound)) = fields.next_entry()? {}
        Ok(Sound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_reader_takes_is_sound() {
        for text in [
            "null",
            "[true, -1, 18446744073709551615, 1.5e300, 1e-999]",
            r#"{"a": {"b": "\u0000\ud83d\ude00"}, "a": []}"#,
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_some_readers_choke_on_is_not() {
        let digits = "9".repeat(400);
        for text in ["1e999", &digits, r#"["\ud800"]"#, r#"{"\udc00": 1}"#] {
            assert!(check(text).is_err(), "{text}");
        }
    }
}
