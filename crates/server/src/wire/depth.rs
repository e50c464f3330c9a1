//! How deep a document nests, found by one pass over its bytes: cheaper than a parser, and it needs
//! no stack, so that a document made of brackets costs its length and nothing else.

use model::limits;

/// Refuses what nests deeper than `DEPTH_MAX`; names the outermost field it lies in, if any.
pub(super) fn check(text: &str) -> Result<(), Option<&str>> {
    let mut depth = 0_usize;
    let mut bytes = text.bytes().enumerate();
    // Where the latest string of the outermost object lies, and whether it turned out to be a name.
    let mut latest = 0..0;
    let mut field = None;
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => {
                let end = skip_string(&mut bytes);
                if depth == 1 {
                    latest = at + 1..end;
                }
            }
            b':' if depth == 1 => field = text.get(latest.clone()),
            b'{' | b'[' => {
                depth += 1;
                if depth > limits::DEPTH_MAX {
                    return Err(field);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

/// Skips the rest of a string; answers where its closing quote is.
fn skip_string(bytes: &mut impl Iterator<Item = (usize, u8)>) -> usize {
    let mut end = 0;
    while let Some((at, byte)) = bytes.next() {
        end = at;
        match byte {
            b'"' => break,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> String {
        format!(
            "{{\"payload\": {}1{}}}",
            "[".repeat(depth),
            "]".repeat(depth)
        )
    }

    #[test]
    fn depth_is_bounded_and_its_field_is_named() {
        assert_eq!(check(&nested(limits::DEPTH_MAX - 1)), Ok(()));
        assert_eq!(check(&nested(limits::DEPTH_MAX)), Err(Some("payload")));
        assert_eq!(check(&"[".repeat(1_000_000)), Err(None));
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        let text = format!("{{\"a\": \"{}\\\"{}\"}}", "[".repeat(99), "{".repeat(99));
        assert_eq!(check(&text), Ok(()));
        assert_eq!(check("\"\\"), Ok(()));
    }
}
