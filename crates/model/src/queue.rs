//! Queues: where workers get their work from. A worker's key names those that it may use.

use std::fmt;

use crate::limits;

/// What a queue is called within its tenant. No two names look alike: there is one case, and nothing but ASCII.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName(String);

/// A name that no queue can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a queue's name has 1 to {} lower-case letters, digits, dashes, underscores and dots, and begins with a letter",
    limits::QUEUE_NAME_MAX
)]
pub struct QueueNameError;

impl QueueName {
    pub fn new(text: &str) -> Result<Self, QueueNameError> {
        let is_part =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
        let begins = text.starts_with(|first: char| first.is_ascii_lowercase());
        if begins && text.len() <= limits::QUEUE_NAME_MAX && text.bytes().all(is_part) {
            Ok(Self(text.to_owned()))
        } else {
            Err(QueueNameError)
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_can_be_confused() {
        for name in ["a", "mail", "mail.bulk", "gpu-2_a", &"a".repeat(64)] {
            assert_eq!(QueueName::new(name).unwrap().as_str(), name);
        }
        let long = "a".repeat(65);
        for name in [
            "", "A", "7a", "-a", ".a", "a b", "a,b", "a\n", "é", "а", &long,
        ] {
            assert_eq!(QueueName::new(name), Err(QueueNameError), "{name:?}");
        }
    }
}
