//! What a template says, read without running it: which secrets and which names it uses, and that it uses nothing that could
//! take more memory than it is given. What is not seen here is the engine's to refuse: a syntax that it cannot read.

use std::collections::BTreeSet;

use model::SecretName;

/// What can be done with a value.
pub(super) const FILTERS: [&str; 4] = ["date", "default", "safe", "tojson"];
/// What a block may begin with. There are no variables of its own: a text that is joined with itself again and again would
/// grow without end.
const BLOCKS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];
/// How often texts are joined, and how deep loops stand in each other. Each multiplies what a value may come to.
const JOINS_MAX: usize = 8;
const LOOPS_MAX: usize = 2;
/// Words before a parenthesis that are no functions.
const WORDS: [&str; 7] = ["and", "or", "not", "in", "if", "elif", "else"];

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) line: usize,
    pub(super) why: String,
}

#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) secrets: BTreeSet<SecretName>,
    /// Names, and the line of each.
    names: Vec<(String, usize)>,
    joins: usize,
    loops: usize,
    /// The longest text in quotes.
    pub(super) text_max: usize,
    /// Whether texts are joined, cut or searched within a loop: every round may then touch all of one.
    pub(super) copies_in_loops: bool,
}

impl Scan {
    /// Whether a name is used anywhere.
    pub(super) fn mentions(&self, name: &str) -> bool {
        self.names.iter().any(|(other, _)| other == name)
    }

    /// Where a name is first used.
    pub(super) fn line_of(&self, name: &str) -> usize {
        let found = self.names.iter().find(|(other, _)| other == name);
        found.map_or(1, |(_, line)| *line)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Name(&'a str),
    Text(&'a str),
    Sign(char),
}

/// Reads a template.
pub(super) fn scan(text: &str) -> Result<Scan, Flaw> {
    let mut scan = Scan::default();
    let mut rest = text;
    let mut line = 1;
    while let Some(at) = rest.find('{') {
        line += lines(rest.get(..at).unwrap_or_default());
        rest = rest.get(at + 1..).unwrap_or_default();
        let (end, is_block) = match rest.chars().next() {
            Some('{') => ("}}", false),
            Some('%') => ("%}", true),
            Some('#') => {
                let inside = rest.get(1..).unwrap_or_default();
                let (comment, after) = inside.split_once("#}").unwrap_or((inside, ""));
                line += lines(comment);
                rest = after;
                continue;
            }
            Some(_) | None => continue,
        };
        rest = rest.get(1..).unwrap_or_default();
        let (tokens, after) = tokens(rest, end, line);
        line += lines(rest.get(..rest.len() - after.len()).unwrap_or_default());
        rest = after;
        scan.tag(&tokens, is_block)?;
    }
    Ok(scan)
}

fn lines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

type Placed<'a> = (Token<'a>, usize);

/// The tokens up to the end of a tag, and what comes after it. A tag does not end within brackets of its own.
fn tokens<'a>(text: &'a str, end: &str, first_line: usize) -> (Vec<Placed<'a>>, &'a str) {
    let (mut tokens, mut rest) = (Vec::new(), text);
    let (mut line, mut depth) = (first_line, 0_isize);
    loop {
        let Some(first) = rest.chars().next() else {
            return (tokens, "");
        };
        if depth == 0
            && let Some(after) = rest.strip_prefix(end)
        {
            return (tokens, after);
        }
        let length = match first {
            '\'' | '"' => {
                let length = quoted(rest, first);
                let inside = rest.get(1..length.saturating_sub(1)).unwrap_or_default();
                tokens.push((Token::Text(inside), line));
                length
            }
            _ if is_part(first) => {
                let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                tokens.push((Token::Name(rest.get(..length).unwrap_or_default()), line));
                length
            }
            _ => {
                depth += match first {
                    '(' | '[' | '{' => 1,
                    ')' | ']' | '}' => -1,
                    _ => 0,
                };
                if !first.is_whitespace() {
                    tokens.push((Token::Sign(first), line));
                }
                first.len_utf8()
            }
        };
        line += lines(rest.get(..length).unwrap_or_default());
        rest = rest.get(length..).unwrap_or_default();
    }
}

fn is_part(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// The length of a text in quotes, with both of them.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return at + 1;
        }
    }
    text.len()
}

impl Scan {
    fn tag(&mut self, tokens: &[Placed<'_>], is_block: bool) -> Result<(), Flaw> {
        if is_block {
            self.block(tokens)?;
        }
        // The first one of a loop says what it goes through.
        let mut searches = tokens
            .first()
            .is_none_or(|(first, _)| !is_block || *first != Token::Name("for"));
        let mut brackets = Brackets::default();
        for (at, (token, line)) in tokens.iter().enumerate() {
            let flaw = |why: String| Flaw { line: *line, why };
            let next = |by: usize| tokens.get(at + by).map(|(token, _)| *token);
            let before = at.checked_sub(1).and_then(|at| tokens.get(at));
            let before = before.map(|(token, _)| *token);
            brackets.pass(*token, before).map_err(flaw)?;
            match *token {
                Token::Sign('*') => {
                    return Err(flaw("a template cannot multiply".to_owned()));
                }
                Token::Sign('~' | '+') => {
                    self.joins += 1;
                    self.copies_in_loops |= self.loops > 0;
                    if self.joins > JOINS_MAX {
                        let why = format!("a template joins at most {JOINS_MAX} times");
                        return Err(flaw(why));
                    }
                }
                Token::Sign(':') => self.copies_in_loops |= self.loops > 0,
                Token::Sign(_) => {}
                Token::Text(text) => self.text_max = self.text_max.max(text.len()),
                Token::Name(name) => {
                    if name == "in" {
                        self.copies_in_loops |= searches && self.loops > 0;
                        searches = true;
                    }
                    let called = next(1) == Some(Token::Sign('('));
                    self.name(name, before, called, *line)?;
                    let is_ours = before != Some(Token::Sign('.')) && name == "secret";
                    if is_ours {
                        let named = (next(1), next(2), next(3));
                        self.secret(named).map_err(flaw)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn block(&mut self, tokens: &[Placed<'_>]) -> Result<(), Flaw> {
        let mut names = tokens.iter().filter_map(|(token, line)| match token {
            Token::Name(name) => Some((*name, *line)),
            Token::Text(_) | Token::Sign(_) => None,
        });
        let (word, line) = names.next().unwrap_or(("", 1));
        if !BLOCKS.contains(&word) {
            let why = format!("{word:?} is no block of a template: use if and for");
            return Err(Flaw { line, why });
        }
        match word {
            "for" => self.loops += 1,
            "endfor" => self.loops = self.loops.saturating_sub(1),
            _ => {}
        }
        if self.loops > LOOPS_MAX {
            let why = format!("loops stand at most {LOOPS_MAX} deep in each other");
            return Err(Flaw { line, why });
        }
        Ok(())
    }

    fn name(
        &mut self,
        name: &str,
        before: Option<Token<'_>>,
        called: bool,
        line: usize,
    ) -> Result<(), Flaw> {
        let flaw = |why: String| Err(Flaw { line, why });
        match before {
            Some(Token::Sign('|')) if FILTERS.contains(&name) => Ok(()),
            Some(Token::Sign('|')) => {
                flaw(format!("unknown filter {name}: use {}", FILTERS.join(", ")))
            }
            Some(Token::Sign('.')) if called => {
                flaw(format!("unknown method {name}: values have none"))
            }
            Some(Token::Sign('.')) => Ok(()),
            Some(_) | None if name == "is" => {
                flaw("there are no tests: compare with ==, or use default".to_owned())
            }
            Some(_) | None if called && name != "secret" && !WORDS.contains(&name) => flaw(
                format!("unknown function {name}: a template knows secret('name') and no other"),
            ),
            Some(_) | None => {
                self.names.push((name.to_owned(), line));
                Ok(())
            }
        }
    }

    /// A secret is named where it is used, so that it is known which ones a target needs.
    fn secret(
        &mut self,
        next: (Option<Token<'_>>, Option<Token<'_>>, Option<Token<'_>>),
    ) -> Result<(), String> {
        let (Some(Token::Sign('(')), Some(Token::Text(name)), Some(Token::Sign(')'))) = next else {
            return Err("a secret is named where it is used: write secret('name')".to_owned());
        };
        let name = SecretName::new(name).map_err(|error| error.to_string())?;
        self.secrets.insert(name);
        Ok(())
    }
}

/// The brackets of a tag that are open. What a list or a map holds stands in the template as it is: one of values could be
/// many times as long as they are, and it would be there as a whole before anybody has counted.
#[derive(Debug, Default)]
struct Brackets {
    /// Whether each makes a list or a map.
    open: Vec<bool>,
}

impl Brackets {
    fn pass(&mut self, token: Token<'_>, before: Option<Token<'_>>) -> Result<(), String> {
        match token {
            Token::Sign('[') => {
                let is_index = match before {
                    Some(Token::Name(name)) => !WORDS.contains(&name),
                    Some(Token::Text(_) | Token::Sign(')' | ']' | '}')) => true,
                    Some(Token::Sign(_)) | None => false,
                };
                self.open.push(!is_index);
            }
            Token::Sign('{') => self.open.push(true),
            Token::Sign('(') => self.open.push(false),
            Token::Sign(')' | ']' | '}') => {
                self.open.pop();
            }
            Token::Name(name) if self.open.contains(&true) && !is_constant(name) => {
                return Err(format!(
                    "a list or a map in a template holds texts and numbers, and {name} is neither: write what \
                     is around it as text, such as [{{{{ a }}}}, {{{{ b }}}}]"
                ));
            }
            Token::Sign(_) | Token::Text(_) | Token::Name(_) => {}
        }
        Ok(())
    }
}

fn is_constant(name: &str) -> bool {
    let is_number = name.starts_with(|first: char| first.is_ascii_digit());
    is_number || ["true", "false", "none", "True", "False", "None"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(text: &str) -> Vec<String> {
        let scan = scan(text).unwrap();
        scan.secrets.iter().map(ToString::to_string).collect()
    }

    fn refused(text: &str) -> (usize, String) {
        let flaw = scan(text).unwrap_err();
        (flaw.line, flaw.why)
    }

    #[test]
    fn secrets_are_found_wherever_they_are_named() {
        assert_eq!(secrets("Bearer {{ secret('a') }}"), ["a"]);
        assert_eq!(secrets("{{ secret('b') }}:{{ secret(\"a\") }}"), ["a", "b"]);
        assert_eq!(
            secrets("{% if payload.x %}{{ 'x' ~ secret('c') }}{% endif %}"),
            ["c"]
        );
        assert!(
            secrets("plain {# secret('a') #} secret('b') {{ \"secret('c')\" }} { x }").is_empty()
        );
        assert!(secrets("{{ payload.secret }}").is_empty());
        assert!(scan("{{ payload.a }}").unwrap().mentions("payload"));
    }

    #[test]
    fn what_a_template_cannot_do_is_refused_with_its_line() {
        let check = |text: &str, line: usize, part: &str| {
            let (found, why) = refused(text);
            assert!(
                found == line && why.contains(part),
                "{text}: {found}: {why}"
            );
        };
        check("a\n{{ x|upper }}", 2, "unknown filter upper");
        check("{{ env('HOME') }}", 1, "secret('name')");
        check("{{ payload.items() }}", 1, "unknown method items");
        check("{{ secret(payload.name) }}", 1, "write secret('name')");
        check("{{\n\nsecret('No') }}", 3, "lower-case");
        check("{{ 'a' * 9 }}", 1, "multiply");
        check("{% set a = 1 %}", 1, "use if and for");
        check("{% with %}", 1, "use if and for");
        check("{{ payload is defined }}", 1, "no tests");
        check(
            &format!("{{{{ 'a'{} }}}}", " ~ 'a'".repeat(9)),
            1,
            "at most 8",
        );
        check(&"{% for a in payload %}".repeat(3), 1, "2 deep");
        check("\n{{ [payload, payload] }}", 2, "holds texts and numbers");
        check("{{ {'a': [slot]} }}", 1, "slot is neither");
        check("{{ ['a'|tojson] }}", 1, "tojson is neither");
        check("{{ payload.x|default([slot]) }}", 1, "slot is neither");
        check("{{ {'a': {'b': 1}}['a'] * 2 }}", 1, "multiply");
        check("{#} {{ ' #}{{ 'a' * 9 }}", 1, "multiply");
    }

    #[test]
    fn texts_in_quotes_and_words_are_no_code() {
        for text in [
            "{{ 'a * b | c(d)' }}",
            "{% if (a) and (b) or not (c) %}{% endif %}",
            "{{ slot|date('%Y', 'UTC') }}",
            "{{ 'it\\'s * ' }}",
            "{{",
            "{{ {'a': {'b': [1, true, none]}}[payload.x][slot] }}",
            "{% if slot in ['a', 'b'] and payload[run.id][0] %}{% endif %}",
            "{% for x in payload.x|default([]) %}{{ x }}{% endfor %}",
            "{% for x in [1, 2] %}{{ x }}{% endfor %}{% for y in payload %}{% endfor %}",
        ] {
            assert!(scan(text).is_ok(), "{text}");
        }
    }
}
