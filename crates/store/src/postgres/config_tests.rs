use super::*;

fn parse(address: &str) -> PgConfig {
    PgConfig::parse(address).unwrap()
}

#[test]
fn an_address_says_all_there_is_to_know() {
    let config = parse(
        "postgres://ann:s3cret@db.example:6432/jobs?sslmode=verify-full&schema=other&connections=3",
    );
    assert_eq!(config.tls, Tls::VerifyFull);
    assert_eq!((config.schema(), config.connections), ("other", 3));
    assert_eq!(config.server.get_password(), Some(&b"s3cret"[..]));
    assert_eq!(config.to_string(), "postgres://db.example:6432/jobs");
}

#[test]
fn the_password_is_never_shown() {
    let config = parse("postgres://ann:s3cret@db.example/jobs");
    assert!(!format!("{config} {config:?} {config:#?}").contains("s3cret"));
    for address in [
        "postgres://ann:s3cret@db.example:none/jobs",
        "postgres://ann:s3cret@db.example/jobs?sslmode=maybe",
        "postgres://ann:s3cret@db.example/jobs?nonsense=1",
        "mysql://ann:s3cret@db.example/jobs",
    ] {
        let error = PgConfig::parse(address).unwrap_err();
        assert!(
            !format!("{error} {error:?}").contains("s3cret"),
            "{error:?}"
        );
    }
}

#[test]
fn a_password_may_come_from_a_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "from a file\nand more").unwrap();
    let address = format!("postgres://ann@db/jobs?passfile={}", file.path().display());
    let config = parse(&address);
    assert_eq!(config.server.get_password(), Some(&b"from a file"[..]));
}

#[test]
fn a_password_may_come_from_the_environment() {
    let within = |address: &str, vars: &[(&str, &str)]| {
        let vars: Vec<_> = vars
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let variable = move |name: &str| {
            let found = vars.iter().find(|(var, _)| var == name);
            found.map(|(_, value)| value.clone())
        };
        let config = PgConfig::parse_within(address, variable).unwrap();
        assert!(!format!("{config} {config:?}").contains("s3cret"));
        config.server.get_password().map(<[u8]>::to_vec)
    };
    let (ours, theirs) = (
        ("PUNCTUAL_STORE_PASSWORD", "s3cret of ours"),
        ("PGPASSWORD", "s3cret of theirs"),
    );
    let plain = "postgres://ann@db/jobs";
    assert_eq!(within(plain, &[]), None);
    assert_eq!(within(plain, &[theirs]).unwrap(), b"s3cret of theirs");
    assert_eq!(within(plain, &[theirs, ours]).unwrap(), b"s3cret of ours");
    let given = "postgres://ann:given@db/jobs";
    assert_eq!(within(given, &[ours]).unwrap(), b"given");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "filed\n").unwrap();
    let filed = format!("{plain}?passfile={}", file.path().display());
    assert_eq!(within(&filed, &[ours]).unwrap(), b"filed");
}

#[test]
fn a_schema_cannot_hold_a_statement() {
    for schema in ["", "a;b", "A", "pg_temp", "1a", "a\"b"] {
        let address = format!("postgres://ann@db/jobs?schema={schema}");
        assert!(PgConfig::parse(&address).is_err(), "{schema}");
    }
}
