//! The layers (ARCHITECTURE.md): a module uses only the modules below it. The tests have the layout of `src`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// From the lowest row to the highest. A module may use itself and the rows below its own.
const ROWS: [&[&str]; 15] = [
    &["types", "error", "loom_shim"],
    &["config"],
    &["fs"],
    &["record"],
    &["index"],
    &["state"],
    &["segment"],
    &["log"],
    &["writer"],
    &["cleaner"],
    &["dir"],
    &["arrow", "text"],
    &["inspect"],
    &["plan"],
    &["python", "jvm"],
];
/// Modules that every other module may use, and that may use each other.
const BASE_MODULES: [&str; 2] = ["types", "error"];
/// The entries of `tests/rust` that are not folders for the modules of `src`.
const OTHER_TESTS: [&str; 6] = ["Cargo.toml", "costs", "crash", "layers.rs", "main.rs", "support"];
const MAX_LINES: usize = 500;
const VAGUE_NAMES: [&str; 8] =
    ["util", "utils", "helper", "helpers", "common", "manager", "managers", "misc"];

/// A file of `src`. The path is relative to `src`.
struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: text.to_owned() }
    }

    fn is_root(&self) -> bool {
        self.path == Path::new("lib.rs")
    }

    /// The modules above and at this file, the outermost first: `index/slots.rs` is `[index, slots]`,
    /// `index/mod.rs` `[index]`.
    fn module(&self) -> Vec<String> {
        let path = self.path.with_extension("");
        let mut names: Vec<_> = path.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
        if names.last().is_some_and(|name| name == "mod" || name == "lib") {
            names.pop();
        }
        names
    }
}

fn sources() -> Vec<Source> {
    fn walk(root: &Path, dir: &Path, found: &mut Vec<Source>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push(Source { path: path.strip_prefix(root).unwrap().to_owned(), text });
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src");
    let mut found = Vec::new();
    walk(&root, &root, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The code without comments and without the contents of string and character literals; lifetimes are kept.
fn code(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let raw = rest.strip_prefix('r').map(|r| r.trim_start_matches('#')).filter(|r| r.starts_with('"'));
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some(raw) = raw.filter(|_| !out.ends_with(|c: char| c.is_alphanumeric() || c == '_')) {
            let hashes = rest.len() - raw.len() - 1;
            let close = format!("\"{}", "#".repeat(hashes));
            let open = hashes + 2;
            rest[open..].find(&close).map_or(rest.len(), |at| open + at + close.len())
        } else if c == '"' {
            quoted(rest, '"')
        } else if rest.starts_with("'\\") || rest.chars().nth(2) == Some('\'') && c == '\'' {
            quoted(rest, '\'')
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        out.push(' ');
        rest = &rest[skipped..];
    }
    out
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        match text.as_bytes().get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

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

/// Names, and the punctuation in paths.
fn tokens(code: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        let length = if is_name(c) {
            rest.find(|c| !is_name(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            c.len_utf8()
        };
        if !c.is_whitespace() {
            tokens.push(&rest[..length]);
        }
        rest = &rest[length..];
    }
    tokens
}

/// The first names after `crate::`, and the modules after a chain of `super::` that leads to the crate root.
/// (In an inline module the chain leads elsewhere, so that only names of modules are used.)
fn names_below_the_root(source: &Source) -> Vec<String> {
    let code = code(&source.text);
    let tokens = tokens(&code);
    let mut names = Vec::new();
    for i in 0..tokens.len() {
        let at = match tokens[i] {
            "crate" if tokens.get(i + 1) == Some(&"::") => i + 2,
            "super" if i < 2 || tokens[i - 2] != "super" => {
                let supers = tokens[i..].chunks(2).take_while(|pair| *pair == ["super", "::"]).count();
                if supers < source.module().len() {
                    continue;
                }
                i + 2 * supers
            }
            _ => continue,
        };
        let mut found = match tokens.get(at) {
            Some(&"{") => group(&tokens[at + 1..]),
            Some(name) => vec![(*name).to_owned()],
            None => continue,
        };
        found.retain(|name| tokens[i] == "crate" || row(name).is_some());
        names.extend(found);
    }
    names
}

/// `a::b, c::{d, e}, f }` starts with `a`, `c` and `f`.
fn group(tokens: &[&str]) -> Vec<String> {
    let (mut names, mut depth, mut is_first) = (Vec::new(), 0, true);
    for token in tokens {
        match *token {
            "{" => depth += 1,
            "}" if depth == 0 => break,
            "}" => depth -= 1,
            "," if depth == 0 => is_first = true,
            name if is_first => {
                names.push(name.to_owned());
                is_first = false;
            }
            _ => {}
        }
    }
    names
}

/// The module of each name that lib.rs exports with `pub use log::{Log, x::Scan}`, so that `crate::Log`
/// counts as a use of `log`.
fn exports(sources: &[Source]) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_root()) {
        let code = code(&source.text);
        let tokens = tokens(&code);
        for i in (0..tokens.len()).filter(|&i| tokens[i] == "use") {
            let path: Vec<_> = tokens[i + 1..].iter().take_while(|&&token| token != ";").copied().collect();
            let start = usize::from(path.starts_with(&["crate"]) || path.starts_with(&["self"])) * 2;
            for name in &path[start + 1..] {
                exports.insert((*name).to_owned(), path[start].to_owned());
            }
        }
    }
    exports
}

fn row(module: &str) -> Option<usize> {
    ROWS.iter().position(|modules| modules.contains(&module))
}

/// The uses of modules that are not below the user, and of modules without a row.
fn upward_uses(sources: &[Source]) -> Vec<String> {
    let exports = exports(sources);
    let mut wrong = Vec::new();
    for source in sources.iter().filter(|source| !source.is_root()) {
        let module = source.module();
        let from = &module[0];
        let file = source.path.display();
        let Some(own_row) = row(from) else {
            wrong.push(format!("{file}: the module `{from}` has no row; see ROWS in tests/rust/layers.rs"));
            continue;
        };
        for name in names_below_the_root(source) {
            let to = exports.get(&name).unwrap_or(&name);
            match row(to) {
                Some(row) if row < own_row || to == from => {}
                Some(_) if BASE_MODULES.contains(&&**to) && BASE_MODULES.contains(&&**from) => {}
                Some(_) => wrong.push(format!("{file}: `{from}` uses `{to}`, which is not below it")),
                None => wrong.push(format!("{file}: `crate::{name}` is in no module that has a row")),
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    wrong
}

/// The words of a name: `LogManager`, `log_manager` and `LOG_MANAGER` all contain `manager`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lowercase = false;
    for c in name.chars() {
        if c == '_' || c.is_uppercase() && after_lowercase {
            words.push(String::new());
        }
        if c != '_' {
            words.last_mut().unwrap().extend(c.to_lowercase());
        }
        after_lowercase = c.is_lowercase();
    }
    words
}

fn vague_names(source: &Source) -> Vec<String> {
    // a module of another crate
    let code = code(&source.text).replace("datasketches::common", "datasketches");
    let module = source.module();
    let names = module.iter().map(String::as_str).chain(tokens(&code));
    let is_vague = |name: &&str| words(name).iter().any(|word| VAGUE_NAMES.contains(&&**word));
    names.filter(is_vague).map(|name| format!("{}: `{name}`", source.path.display())).collect()
}

#[test]
fn modules_use_only_what_is_below_them() {
    let wrong = upward_uses(&sources());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn tests_are_in_the_folder_of_the_module_that_they_test() {
    for entry in fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(row(&name).is_some() || OTHER_TESTS.contains(&&*name), "tests/rust/{name}: no module of src");
    }
}

#[test]
fn no_file_is_longer_than_the_limit() {
    for source in sources() {
        let lines = source.text.lines().count();
        assert!(lines <= MAX_LINES, "{}: {lines} lines, split it by {MAX_LINES}", source.path.display());
    }
}

#[test]
fn only_the_python_module_uses_pyo3() {
    for source in
        sources().iter().filter(|source| source.module().first().is_none_or(|module| module != "python"))
    {
        let found = source.text.lines().position(|line| line.to_lowercase().contains("pyo3"));
        assert_eq!(found.map(|line| line + 1), None, "{} names PyO3", source.path.display());
    }
}

#[test]
fn every_error_of_the_core_has_a_class_in_python() {
    let text = |path: &str| {
        let source = sources().into_iter().find(|source| source.path == Path::new(path)).unwrap();
        code(&source.text)
    };
    let (core, python) = (text("error.rs"), text("python/error.rs"));
    let (_, variants) = core.split_once("pub enum Error {").unwrap();
    let (variants, _) = variants.split_once("\n}").unwrap();
    let names = variants.lines().filter_map(|line| line.strip_prefix("    "));
    let names = names.filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
    let names: Vec<_> = names.map(|line| tokens(line)[0]).collect();
    assert!(names.len() > 10 && names.contains(&"Corrupt"), "{names:?}");
    let used = tokens(&python);
    for name in names {
        let is_named = used.windows(3).any(|found| found == ["Error", "::", name]);
        assert!(is_named, "src/python/error.rs has no class for {name}");
    }
}

#[test]
fn no_name_is_vague() {
    let wrong: Vec<_> = sources().iter().flat_map(vague_names).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The result of the check for one file and a lib.rs.
fn check(path: &str, text: &str) -> Vec<String> {
    let root = "mod log; pub use log::{Log, scan::Scan}; pub use crate::error::Error;";
    upward_uses(&[Source::new("lib.rs", root), Source::new(path, text)])
}

#[test]
fn an_upward_use_is_found() {
    for (path, text) in [
        ("record/batch.rs", "use crate::segment::Segment;"),
        ("record/mod.rs", "use crate::{\n    error::Error,\n    fs::{os, names},\n    log::Log,\n};"),
        ("index/slots.rs", "fn f() -> crate::log::Log { x() }"),
        ("index/slots.rs", "fn f(log: &crate::Log) {}"),
        ("index/slots.rs", "use crate::{error, Scan};"),
        ("index/slots.rs", "use super::super::segment::Segment;"),
        ("index/mod.rs", "use super::segment;"),
        ("error.rs", "use crate::fs::names;"),
        ("types.rs", "use super::config::LogConfig;"),
        ("arrow/mod.rs", "pub(in crate::inspect) fn f() {}"),
        ("log/mod.rs", "#[cfg(test)] mod tests { use crate::dir::LogDir; }"),
        ("log/mod.rs", "const A: &str = r#\"//\"#; const B: char = '\"'; use crate::python::x; // '\""),
    ] {
        assert_eq!(check(path, text).len(), 1, "{path}: {text}");
    }
}

#[test]
fn a_downward_use_is_allowed() {
    for (path, text) in [
        ("segment/mod.rs", "use crate::record::{Batch, crc};\nuse crate::fs::names;"),
        ("segment/read.rs", "use super::mapping; use crate::segment::log_file; use crate::Error;"),
        ("segment/read.rs", "mod tests { use super::*; use super::super::log_file; }"),
        ("error.rs", "use crate::types::Interrupt;"),
        ("types.rs", "use crate::error::{Error, Result};"),
        (
            "types.rs",
            "//! See [`Log`](crate::log::Log).\n/* crate::log /* nested */ crate::log */ const A: &str = \"crate::log\";",
        ),
        ("python/log.rs", "use crate::{arrow, dir::LogDir, log::Log};"),
    ] {
        assert_eq!(check(path, text), [""; 0], "{path}: {text}");
    }
}

#[test]
fn a_module_without_a_row_is_found() {
    assert_eq!(check("shed/mod.rs", "").len(), 1);
    assert_eq!(check("log/mod.rs", "use crate::shed::Rake;").len(), 1);
}

#[test]
fn a_vague_name_is_found() {
    for (path, text, count) in [
        ("log/utils.rs", "", 1),
        ("log/mod.rs", "struct LogManager; fn read_helper() {} mod misc;", 3),
        ("log/mod.rs", "// Kafka: LogManager\nfn uncommon() { print(\"common\") }", 0),
    ] {
        assert_eq!(vague_names(&Source::new(path, text)).len(), count, "{path}: {text}");
    }
}
