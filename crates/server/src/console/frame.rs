//! What all pages have: the frame around them, and the head of their answers.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use model::Role;

use super::assets::{ASSETS, Assets};
use super::fault::PageError;
use super::format::Face;
use super::viewer::Viewer;

/// Whatever a page may ever hold by mistake: nothing of it is run, and nothing is fetched from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

pub(super) type Answer = Result<Response, PageError>;

pub(super) fn page(status: StatusCode, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        // Not `no-referrer`: by that, browsers send `Origin: null` with every form.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// What a page has that nobody is logged in to.
pub(super) struct Bare {
    pub title: String,
    pub assets: &'static Assets,
}

impl Bare {
    pub(super) fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            assets: &ASSETS,
        }
    }
}

pub(super) struct NavItem {
    pub href: &'static str,
    pub name: &'static str,
    /// An outline in a square of 16.
    pub icon: &'static str,
    pub is_current: bool,
}

pub(super) struct NavGroup {
    pub name: &'static str,
    pub items: Vec<NavItem>,
}

/// Path, name, the least role, and icon.
type Entry = (&'static str, &'static str, Role, &'static str);

/// Which pages there are, and who may see them.
const NAV: [(&str, &[Entry]); 3] = [
    (
        "Work",
        &[
            (
                "/",
                "Overview",
                Role::Reader,
                "M2 9h4V2H2zm8 5h4V7h-4zM2 14h4v-3H2zm8-9h4V2h-4z",
            ),
            ("/jobs", "Jobs", Role::Reader, "M2 4h12M2 8h12M2 12h8"),
            ("/runs", "Runs", Role::Reader, "M4 2.5v11l9-5.5z"),
            (
                "/dead",
                "Dead",
                Role::Reader,
                "M5.2 1.7h5.6l3.5 3.5v5.6l-3.5 3.5H5.2l-3.5-3.5V5.2zM6 6l4 4m0-4-4 4",
            ),
            (
                "/calendars",
                "Calendars",
                Role::Reader,
                "M2 3.5h12v10.5H2zM2 7h12M5 1.5v3m6-3v3",
            ),
        ],
    ),
    (
        "System",
        &[
            (
                "/targets",
                "Targets",
                Role::Reader,
                "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zm0 3.5a2 2 0 1 0 0 4 2 2 0 0 0 0-4z",
            ),
            (
                "/lanes",
                "Lanes",
                Role::Reader,
                "M2 3.5h12M2 8h8M2 12.5h4M11.5 6l2 2-2 2",
            ),
            (
                "/nodes",
                "Nodes",
                Role::Root,
                "M2 2.5h12v4.5H2zM2 9h12v4.5H2zM4.5 4.8h.5M4.5 11.2h.5",
            ),
            (
                "/settings",
                "Settings",
                Role::Reader,
                "M2 4.5h6m4 0h2M2 11.5h2m4 0h6M8 4.5a2 2 0 1 0 4 0 2 2 0 0 0-4 0zM4 11.5a2 2 0 1 0 4 0 2 2 0 0 0-4 0z",
            ),
        ],
    ),
    (
        "Access",
        &[
            (
                "/tenants",
                "Tenants",
                Role::Root,
                "M3 14V2.5h6V14M9 6.5h4V14M1.5 14h13M5.6 5.5h.8M5.6 8.5h.8",
            ),
            (
                "/users",
                "Users",
                Role::Admin,
                "M8 8a2.7 2.7 0 1 0 0-5.5A2.7 2.7 0 0 0 8 8zm-5.5 6c.6-2.6 2.7-4 5.5-4s4.9 1.4 5.5 4",
            ),
            (
                "/keys",
                "Keys",
                Role::Admin,
                "M5.5 7.5a3 3 0 1 0 0 .01zM8 7.5h6.5M12 7.5v3",
            ),
            (
                "/secrets",
                "Secrets",
                Role::Admin,
                "M3.5 7h9v7h-9zM5.5 7V4.500a2.5 2.5 0 0 1 5 0V7",
            ),
            (
                "/audit",
                "Audit",
                Role::Admin,
                "M3.5 1.5h6l3 3v10h-9zM6 7.5h4.5M6 10.5h4.5",
            ),
        ],
    ),
];

/// What is said once, after something was done.
pub(super) struct Toast {
    pub text: &'static str,
    /// A form that takes it back: its path, and its word.
    pub undo: Option<(String, &'static str)>,
}

pub(super) struct Frame {
    pub bare: Bare,
    pub viewer: Arc<Viewer>,
    pub nav: Vec<NavGroup>,
    pub csrf: String,
    pub role: &'static str,
    pub zone: String,
    pub toast: Option<Toast>,
    /// The stream that says when there is something new; none on a page that stays as it is.
    pub live: Option<String>,
    /// Where the page's siblings are: name and path, from the outermost on.
    pub crumbs: Vec<(String, String)>,
}

impl Frame {
    /// `at` is the path of the page's entry in the navigation.
    pub(super) fn new(viewer: &Arc<Viewer>, title: impl Into<String>, at: &str) -> Self {
        let nav = NAV.iter().map(|(name, items)| NavGroup {
            name,
            items: items
                .iter()
                .filter(|(_, _, needed, _)| viewer.may(*needed))
                .map(|(href, name, _, icon)| NavItem {
                    href,
                    name,
                    icon,
                    is_current: *href == at,
                })
                .collect(),
        });
        let nav: Vec<NavGroup> = nav.filter(|group| !group.items.is_empty()).collect();
        let all = nav.iter().flat_map(|group| &group.items);
        let crumb = all.filter(|item| item.is_current);
        let crumbs = crumb.map(|item| (item.name.to_owned(), item.href.to_owned()));
        let crumbs = crumbs.collect();
        Self {
            bare: Bare::new(title),
            nav,
            csrf: viewer.csrf(),
            role: viewer.caller.role.as_str(),
            zone: face(viewer).zone_name(),
            toast: None,
            live: None,
            crumbs,
            viewer: Arc::clone(viewer),
        }
    }

    pub(super) fn with_crumb(mut self, name: impl Into<String>, path: impl Into<String>) -> Self {
        self.crumbs.push((name.into(), path.into()));
        self
    }

    pub(super) fn with_live(mut self, path: Option<String>) -> Self {
        self.live = path;
        self
    }

    pub(super) fn with_toast(mut self, toast: Option<Toast>) -> Self {
        self.toast = toast;
        self
    }
}

pub(super) fn face(viewer: &Viewer) -> Face<'_> {
    Face {
        zone: &viewer.zone,
        now: viewer.now,
    }
}
