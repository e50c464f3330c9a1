//! Bytes as hexadecimal digits: how master keys, digests and stored bytes are written. Callers' keys are read in `access`,
//! without an allocation: how long a refusal takes must not say what is wrong.

/// Two lower-case digits a byte.
pub fn to_hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    let digits = bytes.iter();
    digits
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// The bytes that digits of either case stand for; none if something else is among them, or half a byte.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|digit| digit.to_digit(16).map(|value| value as u8))
        .collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    digits
        .chunks(2)
        .map(|pair| Some((pair.first()? << 4) | pair.get(1)?))
        .collect()
}

/// As many bytes as there have to be.
pub fn from_hex_exact<const N: usize>(text: &str) -> Option<[u8; N]> {
    from_hex(text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_survive_as_hexadecimal(bytes: Vec<u8>) {
            let text = to_hex(&bytes);
            prop_assert_eq!(from_hex(&text), Some(bytes.clone()));
            prop_assert_eq!(from_hex(&text.to_uppercase()), Some(bytes));
        }
    }

    #[test]
    fn what_is_not_so_many_bytes_is_refused() {
        assert_eq!(from_hex_exact("0aff"), Some([0x0a, 0xff]));
        for text in ["", "0af", "0aff00", "0afg", " 0aff", "0äf"] {
            assert_eq!(from_hex_exact::<2>(text), None, "{text}");
        }
    }
}
