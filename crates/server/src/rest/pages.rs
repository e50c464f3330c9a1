//! The page of each problem: Markdown as it was written, or simple HTML for a browser.

use std::fmt::Write as _;

use axum::body::Body;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;

use super::answer::Answer;
use super::extract::shown;
use crate::problem::{Kind, Problem};

pub async fn index(headers: HeaderMap) -> Answer {
    let mut text = String::from(
        "# Problems\n\nEvery answer that is not what was asked for names one of these.\n\n",
    );
    for kind in Kind::ALL {
        let (name, status) = (kind.name(), kind.status().as_u16());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "- [{name}](/problems/{name}): {} ({status})",
            kind.title()
        );
    }
    Ok(page(&headers, "Problems", &text))
}

pub async fn show(name: Result<Path<String>, PathRejection>, headers: HeaderMap) -> Answer {
    let name = name.map(|Path(name)| name).unwrap_or_default();
    let kind = Kind::find(&name).ok_or_else(|| {
        let detail = format!(
            "{:?} is not a problem of ours: /problems names them all",
            shown(&name)
        );
        Problem::new(Kind::RouteUnknown, detail)
    })?;
    Ok(page(&headers, kind.title(), kind.page()))
}

fn page(headers: &HeaderMap, title: &str, markdown: &str) -> Response {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    let (media_type, body) = match accept.contains("text/html") {
        true => ("text/html; charset=utf-8", html(title, markdown)),
        false => ("text/markdown; charset=utf-8", markdown.to_owned()),
    };
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

/// Headings, paragraphs and lists: as much of Markdown as the pages use.
fn html(title: &str, markdown: &str) -> String {
    let title = escape(title);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head><body>\n"
    );
    let mut open = "";
    for line in markdown.lines() {
        if let Some(text) = line.strip_prefix("## ") {
            open = close(&mut html, open);
            html.push_str(&format!("<h2>{}</h2>\n", inline(text)));
        } else if let Some(text) = line.strip_prefix("# ") {
            open = close(&mut html, open);
            html.push_str(&format!("<h1>{}</h1>\n", inline(text)));
        } else if let Some(text) = line.strip_prefix("- ") {
            if open != "</ul>\n" {
                open = begin(&mut html, open, "<ul>\n", "</ul>\n");
            }
            html.push_str(&format!("<li>{}</li>\n", inline(text)));
        } else if line.trim().is_empty() {
            open = close(&mut html, open);
        } else {
            if open != "</p>\n" {
                open = begin(&mut html, open, "<p>", "</p>\n");
            }
            html.push_str(&format!("{}\n", inline(line)));
        }
    }
    close(&mut html, open);
    html.push_str("</body></html>\n");
    html
}

/// Ends what is open and begins something else; answers how that ends.
fn begin(html: &mut String, open: &str, tag: &str, end: &'static str) -> &'static str {
    html.push_str(open);
    html.push_str(tag);
    end
}

fn close(html: &mut String, open: &str) -> &'static str {
    html.push_str(open);
    ""
}

/// Code and links within a line.
fn inline(text: &str) -> String {
    let mut html = String::new();
    for (index, part) in text.split('`').enumerate() {
        match index % 2 {
            1 => html.push_str(&format!("<code>{}</code>", escape(part))),
            _ => html.push_str(&link(part)),
        }
    }
    html
}

/// Only links into our own pages; they have no characters that need more than escaping.
fn link(text: &str) -> String {
    let found = text.split_once('[').and_then(|(before, rest)| {
        let (name, rest) = rest.split_once("](/problems/")?;
        let (page, after) = rest.split_once(')')?;
        Some((before, name, page, after))
    });
    match found {
        None => escape(text),
        Some((before, name, page, after)) => format!(
            "{}<a href=\"/problems/{}\">{}</a>{}",
            escape(before),
            escape(page),
            escape(name),
            link(after)
        ),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
