//! Regular expressions for topics, with the same matches as in Spark's Kafka source.
//!
//! Spark selects a topic if `java.util.regex` finds the pattern anywhere in its name (Scala's `findFirstIn`).
//! Accepted are the patterns that have the same meaning there and here:
//!
//! ```text
//! literals . ^ $ | (…) (?:…) (?=…) (?!…) (?<=…) (?<!…) (?>…) (?i:…), and (?i) at the start
//! * + ? {n} {n,} {n,m}, each with ? or + after it
//! [a-z] [^…], inside or outside of them \d \w \s \D \W \S; \b \B \A \Z \z and \Q…\E
//! a backslash before an ASCII character that is neither letter nor digit
//! ```
//!
//! Everything else is refused: `\p{Alpha}`, named groups, back-references, nested classes, characters outside
//! ASCII, and so on. Topic names have only ASCII letters, digits, dots, dashes and underscores, so
//! differences between the languages in line ends before `$` and `\Z` do not matter.

use std::fmt;

use fancy_regex::{Regex, RegexBuilder};

/// The steps after which a search is given up. A topic's name has at most 249 characters.
const MAX_STEPS: usize = 1_000_000;
/// The maximum size of a compiled pattern, bytes.
const MAX_COMPILED_BYTES: usize = 1 << 20;
/// The maximum [`Size`] of a pattern. The compiler checks its limit late, and multiplies repetitions without
/// a check.
const MAX_SIZE: u64 = 100_000;
/// The maximum depth of groups: the compiler recurs, and a thread of Java has a stack of 1 MiB.
const MAX_DEPTH: usize = 30;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct TopicPattern {
    text: String,
    regex: Regex,
}

impl TopicPattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// What is wrong with it: it is not a regular expression, or it may differ in meaning from Java's.
    pub fn new(text: &str) -> Result<Self, String> {
        let regex = RegexBuilder::new(&translated(text)?)
            .backtrack_limit(MAX_STEPS)
            .delegate_size_limit(MAX_COMPILED_BYTES)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { text: text.to_owned(), regex })
    }

    /// The text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the pattern is found anywhere in a topic's name.
    ///
    /// # Errors
    /// What is wrong with the pattern: a search takes too many steps.
    pub fn is_in(&self, topic: &str) -> Result<bool, String> {
        self.regex.is_match(topic).map_err(|error| error.to_string())
    }
}

impl PartialEq for TopicPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Display for TopicPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// The pattern in the syntax of [`Regex`].
fn translated(text: &str) -> Result<String, String> {
    // Spark trims it as Java's String.trim does
    let text = text.trim_matches(|letter| letter <= ' ');
    if text.is_empty() {
        return Err("the pattern is empty".to_owned());
    }
    let (mut rest, mut translated) = match text.strip_prefix("(?i)") {
        Some(rest) => (rest, "(?i)".to_owned()),
        None => (text, String::new()),
    };
    let mut is_repeatable = false;
    let mut size = Size { groups: vec![0], last: 0 };
    while !rest.is_empty() {
        let found = token(rest).filter(|(token, _)| is_repeatable || !matches!(token, Token::Quantifier));
        let Some((token, length)) = found else {
            let start: String = rest.chars().take(3).collect();
            return Err(format!("{start:?}… at position {} is not supported", text.len() - rest.len()));
        };
        is_repeatable = matches!(token, Token::Atom | Token::Class | Token::Quoted(_));
        let written = rest.get(..length).unwrap_or_default();
        size.add(&token, written);
        if size.groups.len() > MAX_DEPTH {
            return Err(format!("groups are nested more than {MAX_DEPTH} deep"));
        }
        if size.groups.iter().any(|size| *size > MAX_SIZE) {
            return Err("the pattern is too large, or repeats too often".to_owned());
        }
        match token {
            Token::Atom | Token::Other | Token::Quantifier => translated += written,
            // two of them in a class are an operator here, and literals in Java
            Token::Class => translated += &written.replace('~', r"\~"),
            Token::Quoted(literal) => translated += &fancy_regex::escape(literal),
            Token::End => translated += r"\z",
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(translated)
}

/// The approximate effort to compile a pattern: 1 for a letter, more for a class and for a group that is
/// compiled on its own, all as often as they are repeated.
struct Size {
    /// Of the open groups so far, the outermost first. The first is the pattern itself.
    groups: Vec<u64>,
    /// Of what a quantifier would repeat.
    last: u64,
}

impl Size {
    const QUANTIFIER: u64 = 4;
    const CLASS: u64 = 30;
    const GROUP: u64 = 100;

    fn add(&mut self, token: &Token<'_>, written: &str) {
        let added = match (token, written) {
            (Token::Quantifier, _) => {
                let numbers = written.split(|letter: char| !letter.is_ascii_digit());
                let count = numbers.filter_map(|number| number.parse::<u64>().ok()).max().unwrap_or(1);
                Self::QUANTIFIER + self.last.saturating_mul(count.saturating_sub(1))
            }
            (_, ")") if self.groups.len() > 1 => {
                self.last = self.groups.pop().unwrap_or_default();
                self.last
            }
            (Token::Other, "(" | "(?:" | "(?i:") => return self.groups.push(1),
            (Token::Other, opening) if opening.starts_with('(') => return self.groups.push(Self::GROUP),
            (Token::Quoted(literal), _) => {
                self.last = 1;
                literal.len() as u64
            }
            (Token::Atom, escaped)
                if escaped.ends_with(|letter: char| letter.is_ascii_alphabetic()) && escaped.len() > 1 =>
            {
                self.last = Self::CLASS;
                self.last
            }
            (Token::Class, written) => {
                self.last = Self::CLASS + written.len() as u64;
                self.last
            }
            _ => {
                self.last = 1;
                1
            }
        };
        if let Some(size) = self.groups.last_mut() {
            *size = size.saturating_add(added);
        }
    }
}

/// A part of a pattern.
enum Token<'a> {
    /// A character, a class such as `\d`, or the end of a group.
    Atom,
    /// `[…]`
    Class,
    /// `\Q…\E`
    Quoted(&'a str),
    Quantifier,
    /// `\Z` or `\z`, which are the same for names without line ends.
    End,
    /// What a quantifier cannot follow: the start of a group or an alternative, an assertion.
    Other,
}

/// The first token and its length in bytes; `None` if it is not supported.
fn token(text: &str) -> Option<(Token<'_>, usize)> {
    let first = text.chars().next()?;
    Some(match first {
        '\\' => match text.chars().nth(1)? {
            'Q' => {
                let quoted = text.get(2..)?;
                let (literal, length) = match quoted.find(r"\E") {
                    Some(end) => (quoted.get(..end)?, end + 4),
                    None => (quoted, text.len()),
                };
                return literal.is_ascii().then_some((Token::Quoted(literal), length));
            }
            'Z' | 'z' => (Token::End, 2),
            'b' | 'B' | 'A' => (Token::Other, 2),
            'd' | 'D' | 'w' | 'W' | 's' | 'S' => (Token::Atom, 2),
            escaped => return is_escapable(escaped).then_some((Token::Atom, 2)),
        },
        '[' => (Token::Class, class(text)?),
        '(' => {
            let openings = ["(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"];
            match openings.iter().find(|opening| text.starts_with(**opening)) {
                Some(opening) => (Token::Other, opening.len()),
                None if text.starts_with("(?") => return None,
                None => (Token::Other, 1),
            }
        }
        '^' | '$' | '|' => (Token::Other, 1),
        '*' | '+' | '?' => (Token::Quantifier, quantified(text, 1)),
        '{' => (Token::Quantifier, quantified(text, repetition(text)?)),
        _ => return first.is_ascii().then_some((Token::Atom, 1)),
    })
}

/// Whether a backslash before the character makes it a literal in both languages.
fn is_escapable(letter: char) -> bool {
    letter.is_ascii() && (' '..='~').contains(&letter) && !letter.is_ascii_alphanumeric()
}

/// The length of a quantifier of `length` bytes with the `?` or `+` after it.
fn quantified(text: &str, length: usize) -> usize {
    let follows = text.get(length..).is_some_and(|rest| rest.starts_with(['?', '+']));
    length + usize::from(follows)
}

/// The length of `{n}`, `{n,}` or `{n,m}` at the start of a text.
fn repetition(text: &str) -> Option<usize> {
    let end = text.find('}')?;
    let is_number =
        |digits: &str| (1..=9).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    let inner = text.get(1..end)?;
    let is_valid = match inner.split_once(',') {
        None => is_number(inner),
        Some((least, most)) => is_number(least) && (most.is_empty() || is_number(most)),
    };
    is_valid.then_some(end + 1)
}

/// The length of a character class at the start of a text. A dash is literal only at its ends, and `&&` is an
/// intersection.
fn class(text: &str) -> Option<usize> {
    let mut at = 1;
    let next = |at: usize| text.get(at..).and_then(|rest| rest.chars().next());
    if next(at) == Some('^') {
        at += 1;
    }
    if next(at) == Some(']') {
        return None;
    }
    if next(at) == Some('-') {
        at += 1;
    }
    loop {
        match next(at)? {
            ']' => return Some(at + 1),
            '-' => return (next(at + 1) == Some(']')).then_some(at + 2),
            _ => {}
        }
        let (length, is_single) = class_item(text.get(at..)?)?;
        at += length;
        // a range
        if is_single && next(at) == Some('-') && next(at + 1) != Some(']') {
            let (end, is_single) = class_item(text.get(at + 1..)?)?;
            if !is_single {
                return None;
            }
            at += 1 + end;
        }
    }
}

/// The length of a character in a class, and whether it is a single one (no `\d` or the like).
fn class_item(text: &str) -> Option<(usize, bool)> {
    let mut letters = text.chars();
    match letters.next()? {
        '\\' => match letters.next()? {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' => Some((2, false)),
            escaped => is_escapable(escaped).then_some((2, true)),
        },
        '&' if letters.next() == Some('&') => None,
        '[' | ']' | '-' => None,
        letter => letter.is_ascii().then_some((1, true)),
    }
}
