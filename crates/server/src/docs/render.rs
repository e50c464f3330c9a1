//! From Markdown to HTML: headings can be linked to, wide tables scroll by themselves, links lead to pages of the server.

use std::collections::BTreeMap;

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::{API, PAGES};

/// A whole page with the list of all pages, of which the one at `here` is marked.
pub(crate) fn document(title: &str, here: &str, body: &str) -> String {
    let entries = PAGES.iter().map(|page| (page.at, page.name));
    let entries = entries.chain([(API, "API"), ("/problems", "Problems")]);
    let entry = |(at, name)| {
        let mark = if at == here {
            " aria-current=\"page\""
        } else {
            ""
        };
        format!("<li><a href=\"{at}\"{mark}>{name}</a></li>\n")
    };
    let list: String = entries.map(entry).collect();
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} · Punctual</title>\n\
         <link rel=\"stylesheet\" href=\"/docs/style.css\">\n</head>\n<body>\n\
         <nav aria-label=\"Documentation\">\n<p><a href=\"/docs\">Punctual</a></p>\n<ul>\n{list}</ul>\n</nav>\n\
         <main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// A text whose links all lead to paths of the server.
pub(crate) fn plain(markdown: &str) -> String {
    body(markdown, |_| None)
}

/// A text as HTML. `shown_at` says where a relative link leads; one that leads nowhere becomes plain text.
pub(crate) fn body(markdown: &str, shown_at: impl Fn(&str) -> Option<String>) -> String {
    let mut page = Page::default();
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        page.add(event, &shown_at);
    }
    let mut text = String::new();
    html::push_html(&mut text, page.events.into_iter());
    text
}

/// What is written, as far as it has been read.
#[derive(Default)]
struct Page<'a> {
    events: Vec<Event<'a>>,
    /// Where the heading that is open begins, and its text so far.
    heading: Option<(usize, String)>,
    /// How often each id was given.
    ids: BTreeMap<String, usize>,
    /// Whether the links that are open are written.
    links: Vec<bool>,
}

impl<'a> Page<'a> {
    fn add(&mut self, event: Event<'a>, shown_at: impl Fn(&str) -> Option<String>) {
        if let Event::Start(Tag::Link { dest_url, .. }) = &event {
            let target = target(dest_url, shown_at);
            self.links.push(target.is_some());
            if let Some(target) = target {
                let href = escape(&target);
                self.html(format!("<a href=\"{href}\">"));
            }
        } else if let Event::End(TagEnd::Link) = event {
            if self.links.pop() == Some(true) {
                self.html("</a>".to_owned());
            }
        } else if let Event::Start(Tag::Table(_)) = event {
            // It can be reached with keys, because whoever has no mouse has to scroll it, too.
            self.html("<div class=\"wide\" tabindex=\"0\">".to_owned());
            self.events.push(event);
        } else if let Event::End(TagEnd::Table) = event {
            self.events.push(event);
            self.html("</div>\n".to_owned());
        } else if let Event::Html(text) | Event::InlineHtml(text) = event {
            // Nobody's HTML is passed on. A comment says nothing to readers.
            if !text.trim_start().starts_with("<!--") {
                self.events.push(Event::Text(text));
            }
        } else {
            self.add_text(event);
        }
    }

    /// Everything else stays as it is; headings get their ids.
    fn add_text(&mut self, event: Event<'a>) {
        if let Event::Start(Tag::Heading { .. }) = event {
            self.heading = Some((self.events.len(), String::new()));
        }
        if let (Event::Text(part) | Event::Code(part), Some((_, text))) =
            (&event, &mut self.heading)
        {
            text.push_str(part);
        }
        let ends = matches!(event, Event::End(TagEnd::Heading(_)));
        self.events.push(event);
        if let (true, Some((at, text))) = (ends, self.heading.take_if(|_| ends)) {
            let given = self.new_id(&text);
            if let Some(Event::Start(Tag::Heading { id, .. })) = self.events.get_mut(at) {
                *id = Some(CowStr::from(given));
            }
        }
    }

    fn html(&mut self, text: String) {
        self.events.push(Event::InlineHtml(CowStr::from(text)));
    }

    /// The first heading of a text has its anchor to itself.
    fn new_id(&mut self, heading: &str) -> String {
        let id = anchor(heading);
        let count = self.ids.entry(id.clone()).or_default();
        *count += 1;
        match *count - 1 {
            0 => id,
            before => format!("{id}-{before}"),
        }
    }
}

/// The id of a heading: the one that others give it too, so that links work wherever the paper is read.
pub(super) fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let id: String = heading.trim().to_lowercase().chars().filter(kept).collect();
    id.replace(' ', "-")
}

/// Where a link leads from a page of the server.
fn target(link: &str, shown_at: impl Fn(&str) -> Option<String>) -> Option<String> {
    let leads_by_itself = ["/", "#", "https://", "http://"]
        .iter()
        .any(|start| link.starts_with(start));
    if leads_by_itself {
        return Some(link.to_owned());
    }
    shown_at(link)
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(markdown: &str) -> String {
        body(markdown, |link| {
            link.strip_suffix(".md").map(|name| format!("/docs/{name}"))
        })
    }

    #[test]
    fn headings_can_be_linked_to() {
        assert_eq!(
            shown("## More time: `Retry-After`"),
            "<h2 id=\"more-time-retry-after\">More time: <code>Retry-After</code></h2>\n"
        );
        let twice = shown("# A\n# A\n");
        assert!(
            twice.contains("id=\"a\"") && twice.contains("id=\"a-1\""),
            "{twice}"
        );
    }

    #[test]
    fn links_are_kept_led_elsewhere_or_taken_away() {
        let check =
            |markdown, expected| assert_eq!(shown(markdown), format!("<p>{expected}</p>\n"));
        check("[a](b.md)", "<a href=\"/docs/b\">a</a>");
        check("[a](#b)", "<a href=\"#b\">a</a>");
        check("[a](/problems/b)", "<a href=\"/problems/b\">a</a>");
        check("[a](b.rs) c", "a c");
        check("[a](javascript:b) c", "a c");
        check("[a](/\"><b>)", "<a href=\"/&quot;&gt;&lt;b&gt;\">a</a>");
    }

    #[test]
    fn html_is_shown_and_not_passed_on() {
        assert_eq!(shown("a <b>c</b>"), "<p>a &lt;b&gt;c&lt;/b&gt;</p>\n");
        assert_eq!(shown("<!-- for people who write -->\n"), "");
        assert_eq!(
            shown("<script>x</script>\n"),
            "&lt;script&gt;x&lt;/script&gt;\n"
        );
        assert_eq!(shown("`<i>`"), "<p><code>&lt;i&gt;</code></p>\n");
    }

    #[test]
    fn tables_scroll_by_themselves() {
        let table = shown("| a |\n| --- |\n| `b\\|c` |\n");
        assert!(
            table.starts_with("<div class=\"wide\" tabindex=\"0\"><table>"),
            "{table}"
        );
        assert!(
            table.contains("<code>b|c</code>") && table.ends_with("</table>\n</div>\n"),
            "{table}"
        );
    }
}
