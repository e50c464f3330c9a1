use std::io::Write;

use super::*;

fn sources(
    file: Option<&str>,
    environment: &[(&str, &str)],
    flags: &[(&'static str, &str)],
) -> (Sources, Option<tempfile::NamedTempFile>) {
    let file = file.map(|text| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    });
    let environment = environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.into()))
        .collect();
    let values = flags
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect();
    let config = file.as_ref().map(|file| file.path().to_owned());
    (
        Sources {
            environment,
            flags: Flags { config, values },
        },
        file,
    )
}

fn refused(
    file: Option<&str>,
    environment: &[(&str, &str)],
    flags: &[(&'static str, &str)],
) -> String {
    let (sources, _file) = sources(file, environment, flags);
    Config::load(&sources).unwrap_err().text
}

fn setting(name: &str) -> &'static Setting {
    SETTINGS
        .iter()
        .find(|setting| setting.name == name)
        .unwrap()
}

#[test]
fn later_layers_win_and_say_where_they_are() {
    let file = "grace = \"1s\"\nrunning_max = 7\n\nhistory_keep = \"2d\"\n";
    let environment = [
        ("PUNCTUAL_GRACE", "2s"),
        ("PUNCTUAL_RUNNING_MAX", "8"),
        ("PUNCTUAL_NODE", ""),
    ];
    let (sources, file) = sources(Some(file), &environment, &[("grace", "3s")]);
    let config = Config::load(&sources).unwrap();
    assert_eq!(config.grace, Duration::from_secs(3));
    assert_eq!(config.running_max, 8);
    assert_eq!(config.history_keep, Duration::from_secs(2 * 86_400));
    let origin = |name| config.shown(setting(name)).1;
    assert_eq!(origin("grace"), "--grace");
    assert_eq!(origin("running_max"), "PUNCTUAL_RUNNING_MAX");
    assert_eq!(
        origin("history_keep"),
        format!("{}, line 4", file.unwrap().path().display())
    );
    assert_eq!(origin("node"), "default", "an empty variable is none");
}

#[test]
fn refusals_name_the_place_and_the_key() {
    let text = refused(Some("grace = \"1s\"\nlsten = \"x\"\n"), &[], &[]);
    assert!(
        text.contains("line 2: unknown key \"lsten\"") && text.contains("listen"),
        "{text}"
    );
    let text = refused(Some("\n\nlisten = \"nowhere\"\n"), &[], &[]);
    assert!(
        text.contains("line 3: listen: \"nowhere\" is not an address"),
        "{text}"
    );
    let text = refused(Some("listen = [1]\n"), &[], &[]);
    assert!(text.contains("line 1: listen is a text"), "{text}");
    let text = refused(Some("grace = \"1s\"\ngrace = \"2s\"\n"), &[], &[]);
    assert!(text.contains("line 2: duplicate key"), "{text}");
    let text = refused(Some("grace = 1s\n"), &[], &[]);
    assert!(text.contains("line 1: ") && !text.contains('\n'), "{text}");
    let text = refused(None, &[("PUNCTUAL_GRACE", "soon")], &[]);
    assert!(
        text.starts_with("PUNCTUAL_GRACE: grace: \"soon\" is not a duration"),
        "{text}"
    );
    let text = refused(None, &[], &[("running_max", "0")]);
    assert!(
        text.starts_with("--running-max: running_max: \"0\" is not a number from 1"),
        "{text}"
    );
}

#[test]
fn every_default_can_be_written_down_and_read_back() {
    let defaults = settings::defaults();
    for setting in SETTINGS {
        assert_eq!(setting.flag, setting.name.replace('_', "-"));
        let mut config = defaults.clone();
        let text = setting.default_value();
        assert_eq!(
            (setting.set)(&mut config, &text),
            Ok(()),
            "{}",
            setting.name
        );
        assert_eq!(config, defaults, "{}", setting.name);
    }
}

/// One of each setting.
const BAD: &[(&str, &str)] = &[
    ("data", ""),
    ("store", "mysql://127.0.0.1/x"),
    ("store_password", "two\nlines"),
    ("master_key_file", "two\nlines"),
    ("master_key", "short"),
    ("master_key_command", " "),
    ("master_key_old_file", "two\nlines"),
    ("parts", "api,clock"),
    ("hold", "perhaps"),
    ("clock_skew_max", "soon"),
    ("listen", "127.0.0.1"),
    ("insecure_no_auth", "maybe"),
    ("metrics_open", "2"),
    ("hosts", "http://a.example"),
    ("node", "two words"),
    ("grace", "2h"),
    ("running_max", "-1"),
    ("origin_calls_max", "0"),
    ("history_keep", "0s"),
    ("finished_keep", "P1M"),
    ("audit_keep", "0s"),
    ("health_bound", "10"),
    ("log", "engine=loud"),
    ("log_format", "xml"),
    ("tls_cert", "two\nlines"),
    ("tls_key", "two\nlines"),
    ("tls_client_ca", "two\nlines"),
    ("plain_http", "perhaps"),
    ("public_url", "jobs.example.com"),
    ("trusted_proxies", "10.0.0.1/8"),
    ("proxy_header", "x-real-ip"),
    ("cors_origins", "*"),
    ("connections_max", "0"),
    ("connections_share", "101"),
    ("rate_key_max", "-1"),
    ("rate_address_max", "fast"),
    ("rate_refused_max", "1000001"),
    ("egress_allow", "localhost"),
    ("egress_ports", "http"),
    ("shell_allow", "bin/true"),
    ("shell_user", "two\nlines"),
    ("shell_running_max", "0"),
    ("shell_processes_max", "many"),
    ("shell_memory_max", "1"),
    ("shell_file_max", "-1"),
    ("python_allow", "usr/bin/python3"),
    ("python_user", "two\nlines"),
    ("python_bwrap", "bwrap"),
    ("python_running_max", "0"),
    ("python_processes_max", "many"),
    ("python_memory_max", "1"),
    ("python_disk_max", "-1"),
];

#[test]
fn bad_values_of_every_setting_are_refused() {
    assert_eq!(BAD.len(), SETTINGS.len(), "each has a bad value here");
    for (name, text) in BAD.iter().copied() {
        let mut config = settings::defaults();
        assert!(
            (setting(name).set)(&mut config, text).is_err(),
            "{name} = {text:?}"
        );
    }
}

#[test]
fn a_secret_is_never_shown_and_of_an_address_only_its_password_is_hidden() {
    let environment = [("PUNCTUAL_STORE_PASSWORD", "s3cret")];
    let (sources, _file) = sources(
        None,
        &environment,
        &[("store", "postgres://ann@db/jobs?sslmode=require")],
    );
    let config = Config::load(&sources).unwrap();
    assert_eq!(sources.unknown_variables(), Vec::<String>::new());
    let shown = |config: &Config, name| config.shown(setting(name)).0;
    assert_eq!(shown(&config, "store_password"), "***");
    assert_eq!(
        shown(&config, "store"),
        "postgres://ann@db/jobs?sslmode=require"
    );
    assert!(!format!("{config:?}").contains("s3cret"));
    let address = config.store_address().unwrap();
    assert_eq!(
        address,
        "postgres://ann@db/jobs?sslmode=require&password=s3cret"
    );
    let mut own = config.clone();
    own.store = Some("postgres://ann:0wn@db/jobs".to_owned());
    assert_eq!(own.store_address(), own.store, "the address goes first");
    assert_eq!(shown(&own, "store"), "postgres://ann:***@db/jobs");
    assert_eq!(own.contradictions().len(), 1);
}

#[test]
fn a_master_key_comes_from_one_place_and_is_never_shown() {
    let key = "5e".repeat(32);
    let environment = [("PUNCTUAL_MASTER_KEY", key.as_str())];
    let (given, _file) = sources(None, &environment, &[("master_key_file", "/keys")]);
    let config = Config::load(&given).unwrap();
    let refused = config.check_master_key().unwrap_err().text;
    assert!(
        refused.contains("master_key and master_key_file"),
        "{refused}"
    );
    assert_eq!(config.shown(setting("master_key")).0, "***");
    assert!(!format!("{config:?}").contains("5e5e"));
    let (one, _file) = sources(None, &environment, &[]);
    assert_eq!(Config::load(&one).unwrap().check_master_key(), Ok(()));
    let text = refused_of("PUNCTUAL_MASTER_KEY", "planted");
    assert!(text.contains("hex") && !text.contains("planted"), "{text}");
}

fn refused_of(name: &str, text: &str) -> String {
    refused(None, &[(name, text)], &[])
}

#[test]
fn other_machines_are_let_in_only_with_keys() {
    let mut config = settings::defaults();
    config.insecure_no_auth = true;
    assert_eq!(config.check_listen(), Ok(()));
    assert_eq!(config.contradictions(), Vec::<String>::new());
    config.listen = "0.0.0.0:7710".parse().unwrap();
    let refused = config.check_listen().unwrap_err().text;
    assert!(refused.contains("--insecure-no-auth"), "{refused}");
    config.insecure_no_auth = false;
    let refused = config.check_listen().unwrap_err().text;
    assert!(
        refused.contains("--tls-cert") && refused.contains("--plain-http"),
        "{refused}"
    );
    config.front.plain_http = true;
    assert_eq!(config.check_listen(), Ok(()));
    assert_eq!(config.contradictions().len(), 1);
    config.front.tls_cert = Some("cert.pem".into());
    let refused = config.check_listen().unwrap_err().text;
    assert!(refused.contains("--tls-key"), "{refused}");
    config.front.tls_key = Some("key.pem".into());
    config.front.plain_http = false;
    assert_eq!(config.check_listen(), Ok(()));
    assert_eq!(config.contradictions(), Vec::<String>::new());
    config.front.tls_cert = None;
    let refused = config.check_listen().unwrap_err().text;
    assert!(refused.contains("--tls-cert"), "{refused}");
    config.front.tls_key = None;
    config.front.tls_client_ca = Some("ca.pem".into());
    assert!(config.check_listen().is_err());
}

#[test]
fn a_part_is_left_out_only_when_others_can_do_it() {
    let load = |flags: &[(&'static str, &str)]| Config::load(&sources(None, &[], flags).0).unwrap();
    let postgres = ("store", "postgres://a@127.0.0.1/a");
    assert_eq!(load(&[]).check_parts(), Ok(()));
    assert_eq!(
        load(&[("parts", "execute,api,schedule")]).check_parts(),
        Ok(())
    );
    assert_eq!(load(&[("parts", "api"), postgres]).check_parts(), Ok(()));
    let refused = load(&[("parts", "schedule, api")])
        .check_parts()
        .unwrap_err();
    assert!(
        refused
            .text
            .starts_with("parts: api,schedule is not enough")
            && refused.text.contains("--store postgres://"),
        "{}",
        refused.text
    );
    let text = refused_parts("");
    assert!(
        text.starts_with("--parts: parts: no part is named"),
        "{text}"
    );
    let text = refused_parts("api,excute");
    assert!(text.contains("there is no part 'excute'"), "{text}");
}

fn refused_parts(text: &str) -> String {
    refused(None, &[], &[("parts", text)])
}

#[test]
fn nodes_of_one_machine_that_share_a_store_have_names_of_their_own() {
    let postgres = ("store", "postgres://a@127.0.0.1/a");
    let load = |flags: &[(&'static str, &str)]| Config::load(&sources(None, &[], flags).0).unwrap();
    let alone = load(&[]);
    assert_eq!(alone.node_at(7710), alone.node);
    let shared = load(&[postgres, ("listen", "127.0.0.1:7711")]);
    assert_eq!(shared.node_at(7711), format!("{}:7711", alone.node));
    assert_eq!(shared.shown(setting("node")).0, shared.node_at(7711));
    let named = load(&[postgres, ("node", "a")]);
    assert_eq!(named.node_at(7710), "a");
}

#[test]
fn with_keys_public_addresses_are_called_and_without_them_all_unless_it_is_said() {
    let shown = |flags: &[(&'static str, &str)]| {
        let config = Config::load(&sources(None, &[], flags).0).unwrap();
        let (value, _) = config.shown(setting("egress_allow"));
        (value, config.warning_of_egress().is_some())
    };
    let no_keys = ("insecure_no_auth", "true");
    let public = ("public".to_owned(), false);
    assert_eq!(shown(&[]), public);
    assert_eq!(shown(&[no_keys]), ("all".to_owned(), true));
    assert_eq!(shown(&[no_keys, ("egress_allow", "public")]), public);
    let both = "public,10.0.0.0/8";
    assert_eq!(shown(&[("egress_allow", both)]), (both.to_owned(), false));
}

#[test]
fn contradictions_are_noticed() {
    let environment = [
        ("PUNCTUAL_LISTEN", "0.0.0.0:7710"),
        ("PUNCTUAL_PLAIN_HTTP", "true"),
        ("PUNCTUAL_PROXY_HEADER", "x-forwarded-for"),
        ("PUNCTUAL_FINISHED_KEEP", "60d"),
        ("PUNCTUAL_HEALTH_BOUND", "1s"),
        ("PUNCTUAL_LISTN", "x"),
        ("PUNCTUAL_SERVER", "http://127.0.0.1:1"),
    ];
    let (sources, _file) = sources(None, &environment, &[]);
    assert_eq!(Config::load(&sources).unwrap().contradictions().len(), 4);
    assert_eq!(
        sources.unknown_variables(),
        ["PUNCTUAL_LISTN is set and is no setting"]
    );
}

/// What the guide says of a default that depends on the machine.
fn default_in_words(setting: &Setting) -> String {
    match setting.name {
        "data" => "`/var/lib/punctual` for root, else `~/.local/share/punctual`".to_owned(),
        "node" => "the machine's name".to_owned(),
        _ => match setting.default_value().as_str() {
            "" => String::new(),
            value => format!("`{value}`"),
        },
    }
}

fn table_of_settings() -> String {
    let mut table = String::from(
        "| setting | flag and variable | default | what it is |\n| --- | --- | --- | --- |\n",
    );
    for setting in SETTINGS {
        let (name, variable, help) = (setting.name, setting.variable(), setting.help);
        let flag = format!("--{} {}", setting.flag, setting.value);
        let (flag, default) = (flag.trim_end(), default_in_words(setting));
        table.push_str(&format!(
            "| `{name}` | `{flag}`, `{variable}` | {default} | {help} |\n"
        ));
    }
    table
}

#[test]
fn the_guide_names_every_setting() {
    const GUIDE: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/guides/configuration.md"
    );
    let guide = std::fs::read_to_string(GUIDE).unwrap();
    let (before, rest) = guide.split_once("themselves -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    let made = format!(
        "{before}themselves -->\n{}<!-- end -->{after}",
        table_of_settings()
    );
    if std::env::var_os("PUNCTUAL_WRITE_DOCS").is_some() {
        std::fs::write(GUIDE, &made).unwrap();
    } else {
        assert!(
            guide == made,
            "docs/guides/configuration.md is not current: run make docs"
        );
    }
}
