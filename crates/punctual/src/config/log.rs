//! What `log` may say: a level, and levels of modules.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

/// Reads a filter. The library's own words for it are wider: there a level that is written wrong names a module, and silences
/// all others.
pub(crate) fn filter(text: &str) -> Result<EnvFilter, String> {
    let parts = text.split(',').map(|part| directive(part.trim()));
    let parts = parts.collect::<Result<Vec<String>, String>>()?;
    EnvFilter::try_new(parts.join(",")).map_err(|error| error.to_string())
}

/// A part as the library has it.
fn directive(part: &str) -> Result<String, String> {
    let (module, level) = match part.split_once('=') {
        Some((module, level)) => (Some(module.trim()), level.trim()),
        None => (None, part),
    };
    let is_path = |module: &str| {
        let is_word = |word: &str| {
            let starts = |b: &u8| b.is_ascii_alphabetic() || *b == b'_';
            let goes_on = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
            word.as_bytes().first().is_some_and(starts) && word.bytes().all(goes_on)
        };
        module.split("::").all(is_word)
    };
    if let Some(module) = module.filter(|module| !is_path(module)) {
        return Err(format!(
            "{module:?} is not a module: write engine=debug or store::postgres=debug"
        ));
    }
    let is_level = level.bytes().all(|b| b.is_ascii_alphabetic()) && !level.is_empty();
    if !is_level || level.parse::<LevelFilter>().is_err() {
        return Err(format!(
            "{level:?} is not a level: write error, warn, info, debug, trace or off, and module=level for one module"
        ));
    }
    Ok(match module {
        Some(module) => format!("{module}={level}"),
        None => level.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_levels_of_modules_are_read() {
        for text in [
            "info",
            "WARN",
            "off",
            "info,engine=debug",
            " info , store::postgres = trace ",
            "engine=off,server::rest=debug",
        ] {
            assert!(filter(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_would_silence_everything_else_is_refused_with_the_fix() {
        for (text, why) in [
            ("inof", "\"inof\" is not a level: write error"),
            ("", "\"\" is not a level"),
            ("info,", "\"\" is not a level"),
            ("info,engine", "\"engine\" is not a level"),
            ("engine=loud", "\"loud\" is not a level"),
            ("engine=", "\"\" is not a level"),
            ("3", "\"3\" is not a level"),
            ("tower-http=debug", "\"tower-http\" is not a module"),
            ("=debug", "\"\" is not a module"),
            ("[request]=debug", "\"[request]\" is not a module"),
            ("engine::=debug", "\"engine::\" is not a module"),
        ] {
            let refused = filter(text).map(|_| ()).unwrap_err();
            assert!(refused.starts_with(why), "{text}: {refused}");
        }
    }
}
