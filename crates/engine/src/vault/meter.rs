//! What a rendering may still take. Everything that a template can make large is paid for here, before it is made: the bytes that
//! filters and places write, and each value of a list or a map that anything goes through. Nothing of it waits, so this
//! is also what bounds the time that a rendering keeps its thread.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use minijinja::value::{Enumerator, Object, ObjectRepr};
use minijinja::{Error, ErrorKind, Value};
use serde_json::Value as Json;

/// Bytes that one rendering may write, in all its filters and places. A body may be filtered as a whole some times over.
const BYTES_MAX: i64 = 2 * 1024 * 1024;
/// What going through one value of a list costs, in bytes.
const VALUE_COST: usize = 4;

/// What is left.
#[derive(Debug)]
pub(super) struct Meter(AtomicI64);

impl Meter {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(BYTES_MAX)))
    }

    /// False when there is not as much. From then on there is nothing.
    fn take(&self, bytes: usize) -> bool {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let left = self.0.load(Ordering::Relaxed).saturating_sub(bytes);
        self.0.store(left, Ordering::Relaxed);
        left >= 0
    }

    /// Whether something was not made because it was too much. What was made since is not whole.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.0.load(Ordering::Relaxed) < 0 {
            Err(Error::from(ErrorKind::OutOfFuel))
        } else {
            Ok(())
        }
    }

    /// Pays for a text that is copied.
    pub(super) fn copy(&self, text: &str, bytes_max: usize) -> Result<String, Error> {
        if text.len() > bytes_max {
            return Err(Error::from(ErrorKind::WriteFailure));
        }
        self.take(text.len());
        self.check()?;
        Ok(text.to_owned())
    }

    /// A value as JSON of at most so many bytes.
    pub(super) fn json(&self, value: &Value, bytes_max: usize) -> Result<String, Error> {
        let mut written = Written {
            bytes: Vec::new(),
            bytes_max,
            is_full: false,
            meter: self,
        };
        let done = serde_json::to_writer(&mut written, value);
        self.check()?;
        if written.is_full {
            return Err(Error::from(ErrorKind::WriteFailure));
        }
        let unwritable = || Error::new(ErrorKind::BadSerialization, "it cannot be written as JSON");
        done.map_err(|_| unwritable())?;
        String::from_utf8(written.bytes).map_err(|_| unwritable())
    }

    /// A value that templates may go through as far as it is paid for.
    pub(super) fn value(self: &Arc<Self>, json: Json) -> Value {
        let meter = Arc::clone(self);
        match json {
            Json::Array(items) => {
                let items = items.into_iter().map(|item| self.value(item)).collect();
                Value::from_object(List { items, meter })
            }
            Json::Object(fields) => {
                let fields = fields.into_iter();
                let fields = fields.map(|(name, field)| (name, self.value(field)));
                let fields = fields.collect();
                Value::from_object(Map { fields, meter })
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {
                Value::from_serialize(json)
            }
        }
    }
}

/// Takes no more than its bound, and than is left.
struct Written<'a> {
    bytes: Vec<u8>,
    bytes_max: usize,
    is_full: bool,
    meter: &'a Meter,
}

impl io::Write for Written<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_full |= self.bytes.len() + bytes.len() > self.bytes_max;
        if self.is_full || !self.meter.take(bytes.len()) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct List {
    items: Vec<Value>,
    meter: Arc<Meter>,
}

impl Object for List {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.items.get(key.as_usize()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        if self.meter.take(VALUE_COST * (1 + self.items.len())) {
            Enumerator::Seq(self.items.len())
        } else {
            Enumerator::Empty
        }
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.items.len())
    }
}

#[derive(Debug)]
struct Map {
    fields: BTreeMap<String, Value>,
    meter: Arc<Meter>,
}

impl Object for Map {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.fields.get(key).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let names = self.fields.keys();
        let bytes: usize = names.map(|name| VALUE_COST + name.len()).sum();
        if self.meter.take(VALUE_COST + bytes) {
            let names = self.fields.keys();
            Enumerator::Values(names.map(|name| Value::from(name.as_str())).collect())
        } else {
            Enumerator::Empty
        }
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.fields.len())
    }
}
