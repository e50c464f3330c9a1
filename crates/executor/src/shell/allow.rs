//! Which commands a node may start: its operator names programs and folders of programs, for all tenants or for one.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use model::TenantId;

/// What may be started. Nothing, unless something is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commands {
    allowed: Vec<Allowed>,
    /// The setting that they are named by.
    flag: &'static str,
}

/// What scripts may be run with, and why none can be, if that is so.
#[derive(Debug, Clone, Default)]
pub struct Scripts {
    pub interpreters: Commands,
    pub broken: Option<String>,
}

impl Default for Commands {
    fn default() -> Self {
        Self {
            allowed: Vec::new(),
            flag: "--shell-allow",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Allowed {
    /// None: every tenant.
    tenant: Option<TenantId>,
    /// Ends with a slash if it is a folder.
    path: String,
}

/// Why a command may not be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandRefused {
    #[error(
        "this node starts no commands: its operator can allow programs and folders with {flag}, such as {flag} {program}"
    )]
    Off { flag: &'static str, program: String },
    #[error(
        "this node may not start {program}: its operator can allow it with {flag}, by its path or by that of its folder with a slash at its end"
    )]
    NotNamed { flag: &'static str, program: String },
    #[error(
        "{program} leads to {path}, which is outside of the folder that this node may start programs of"
    )]
    LeadsOut { program: String, path: String },
    #[error("{program} cannot be started: {why}")]
    Absent { program: String, why: String },
}

impl Allowed {
    fn is_folder(&self) -> bool {
        self.path.ends_with('/')
    }

    fn is_for(&self, tenant: TenantId) -> bool {
        self.tenant.is_none_or(|only| only == tenant)
    }

    fn names(&self, program: &str) -> bool {
        if self.is_folder() {
            program.starts_with(&self.path) && program.len() > self.path.len()
        } else {
            program == self.path
        }
    }
}

impl Commands {
    /// The same as interpreters of scripts.
    pub fn of_scripts(self) -> Self {
        Self {
            flag: "--python-allow",
            ..self
        }
    }

    pub fn is_off(&self) -> bool {
        self.allowed.is_empty()
    }

    /// Whether a tenant's jobs may start a program, as far as its path says. The path has no `..` in it.
    pub fn check(&self, tenant: TenantId, program: &str) -> Result<(), CommandRefused> {
        self.naming(tenant, program)
            .next()
            .map(|_| ())
            .ok_or_else(|| {
                let (flag, program) = (self.flag, program.to_owned());
                if self.is_off() {
                    CommandRefused::Off { flag, program }
                } else {
                    CommandRefused::NotNamed { flag, program }
                }
            })
    }

    fn naming(&self, tenant: TenantId, program: &str) -> impl Iterator<Item = &Allowed> {
        let program = program.to_owned();
        self.allowed
            .iter()
            .filter(move |it| it.is_for(tenant) && it.names(&program))
    }

    /// The file to execute. One that is named itself may be a link; one below a folder leads to no place outside of it.
    pub fn resolve(&self, tenant: TenantId, program: &str) -> Result<PathBuf, CommandRefused> {
        self.check(tenant, program)?;
        let absent = |error: &io::Error| CommandRefused::Absent {
            program: program.to_owned(),
            why: error.to_string(),
        };
        let path = Path::new(program);
        let real = path.canonicalize().map_err(|error| absent(&error))?;
        for allowed in self.naming(tenant, program) {
            if !allowed.is_folder() {
                return Ok(path.to_owned());
            }
            let folder = Path::new(&allowed.path).canonicalize();
            if real.starts_with(folder.map_err(|error| absent(&error))?) {
                return Ok(real);
            }
        }
        Err(CommandRefused::LeadsOut {
            program: program.to_owned(),
            path: real.display().to_string(),
        })
    }
}

impl FromStr for Commands {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let entries = text.split(',').map(str::trim).filter(|it| !it.is_empty());
        Ok(Self {
            allowed: entries.map(Allowed::parse).collect::<Result<_, _>>()?,
            ..Self::default()
        })
    }
}

impl Allowed {
    fn parse(entry: &str) -> Result<Self, String> {
        let (tenant, path) = match entry.split_once('=') {
            Some((tenant, path)) if !tenant.contains('/') => {
                let tenant: TenantId = tenant.parse().map_err(|_| {
                    format!("{tenant:?} is no tenant's id: write tenant_…=/opt/jobs/")
                })?;
                (Some(tenant), path)
            }
            Some(_) | None => (None, entry),
        };
        let bad = |why: &str| {
            Err(format!(
                "{path:?} {why}: write /usr/bin/pg_dump for a program, or /opt/jobs/ for all in a folder"
            ))
        };
        if !path.starts_with('/') {
            return bad("is no absolute path");
        }
        let inner = path.trim_start_matches('/').trim_end_matches('/');
        let is_odd = |part: &str| part.is_empty() || part == "." || part == "..";
        if path != "/" && inner.split('/').any(is_odd) {
            return bad("has an empty part, . or ..");
        }
        if path.contains(char::is_control) {
            return bad("has control characters");
        }
        let path = path.to_owned();
        if !path.ends_with('/') && Path::new(&path).is_dir() {
            return Err(format!(
                "{path} is a folder: write {path}/ to allow all in it"
            ));
        }
        Ok(Self { tenant, path })
    }
}

impl fmt::Display for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Allowed { tenant, path }) in self.allowed.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            if let Some(tenant) = tenant {
                write!(f, "{tenant}=")?;
            }
            f.write_str(path)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: TenantId = TenantId::DEFAULT;

    fn one() -> TenantId {
        TenantId::from_bytes([7; 16])
    }

    #[test]
    fn nothing_may_be_started_unless_it_is_named() {
        let off: Commands = "".parse().unwrap();
        assert!(off.is_off());
        let refused = off.check(OTHER, "/bin/true").unwrap_err().to_string();
        assert!(refused.contains("--shell-allow /bin/true"), "{refused}");
        let text = format!("/usr/bin/x,{}=/opt/jobs/", one());
        let some: Commands = text.parse().unwrap();
        assert_eq!(some.to_string(), text);
        for (tenant, program, may) in [
            (OTHER, "/usr/bin/x", true),
            (one(), "/usr/bin/x", true),
            (OTHER, "/usr/bin/xy", false),
            (OTHER, "/usr/bin/x/y", false),
            (one(), "/opt/jobs/a", true),
            (one(), "/opt/jobs/b/c", true),
            (one(), "/opt/jobs/", false),
            (one(), "/opt/jobsa", false),
            (OTHER, "/opt/jobs/a", false),
        ] {
            assert_eq!(some.check(tenant, program).is_ok(), may, "{program}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (text, part) in [
            ("bin/true", "absolute"),
            ("/opt/../bin", ".."),
            ("/opt//bin", "empty"),
            ("someone=/opt/x", "tenant"),
            ("/usr/bin", "write /usr/bin/"),
            ("/a\nb", "control"),
        ] {
            let error = text.parse::<Commands>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(
            "/".parse::<Commands>()
                .unwrap()
                .check(OTHER, "/bin/sh")
                .is_ok()
        );
    }

    #[test]
    fn a_link_leads_to_no_place_outside_of_its_folder() {
        let folder = std::env::temp_dir().join(format!("punctual-allow-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("jobs")).unwrap();
        let jobs = folder.join("jobs");
        std::fs::write(jobs.join("inside"), "").unwrap();
        std::os::unix::fs::symlink(jobs.join("inside"), jobs.join("link")).unwrap();
        std::os::unix::fs::symlink("/bin/sh", jobs.join("out")).unwrap();
        let path = |name: &str| jobs.join(name).display().to_string();
        let commands: Commands = format!("{}/", jobs.display()).parse().unwrap();
        let resolve = |name: &str| commands.resolve(OTHER, &path(name));
        assert!(resolve("inside").unwrap().ends_with("inside"));
        assert!(resolve("link").unwrap().ends_with("inside"));
        let refused = resolve("out").unwrap_err();
        assert!(
            matches!(refused, CommandRefused::LeadsOut { .. }),
            "{refused}"
        );
        let refused = resolve("none").unwrap_err();
        assert!(
            matches!(refused, CommandRefused::Absent { .. }),
            "{refused}"
        );
        // A link that is named itself is what its operator says it is.
        let named: Commands = path("out").parse().unwrap();
        assert_eq!(
            named.resolve(OTHER, &path("out")).unwrap(),
            jobs.join("out")
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
