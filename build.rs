//! Generates the documentation of the Python module from its stub, `python/cordwood/_core.pyi`, the only place where it is
//! written: `stub_doc!(Log.scan)` is the docstring of `Log.scan` in the stub, and `stub_doc!(module)` that of the file.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

const STUB: &str = "python/cordwood/_core.pyi";
const QUOTES: &str = "\"\"\"";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_PYTHON").is_none() {
        return Ok(());
    }
    println!("cargo::rerun-if-changed={STUB}");
    let mut arms = String::new();
    for (name, docstring) in docstrings(&fs::read_to_string(STUB)?)? {
        // a Rust string literal by `Debug` is correct for these texts
        writeln!(arms, "    ({name}) => {{ {docstring:?} }};")?;
    }
    let out = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    fs::write(Path::new(&out).join("stub_doc.rs"), format!("macro_rules! stub_doc {{\n{arms}}}\n"))?;
    Ok(())
}

/// The docstrings of a stub formatted by `ruff format`, by name: `module`, `Class`, `Class.method` or `function`. A
/// docstring begins on a line after its `class` or `def`.
fn docstrings(stub: &str) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    let (mut class, mut name) = ("", "module".to_owned());
    let mut lines = stub.lines();
    while let Some(line) = lines.next() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if let Some(rest) = text.strip_prefix("class ") {
            class = identifier(rest);
            name = class.into();
        } else if let Some(rest) = text.strip_prefix("def ") {
            let function = identifier(rest);
            name = if indent == 0 { function.into() } else { format!("{class}.{function}") };
        } else if let Some(first) = text.strip_prefix(QUOTES) {
            let mut docstring = String::new();
            let mut line = first;
            while !line.ends_with(QUOTES) {
                docstring.push_str(line);
                docstring.push('\n');
                let next =
                    lines.next().ok_or_else(|| format!("{STUB}: the docstring of {name} does not end"))?;
                // as inspect.cleandoc does: the indentation of examples is kept
                line = next.get(indent..).unwrap_or_default();
            }
            docstring.push_str(line.strip_suffix(QUOTES).unwrap_or_default());
            if docstring.contains('\\') {
                return Err(format!("{STUB}: the docstring of {name} has an escape, which is not supported"));
            }
            found.push((name.clone(), docstring.trim_end().to_owned()));
        }
    }
    Ok(found)
}

fn identifier(text: &str) -> &str {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or_default()
}
