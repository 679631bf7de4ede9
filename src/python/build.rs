//! Generates the documentation of the Python module from its stub, the only place where it is written:
//! `python/cordwood/_core.pyi` and the files of `_stubs`, from which it imports. `stub_doc!(Log.scan)` is the
//! docstring of `Log.scan` in one of these files, and `stub_doc!(module)` that of `_core.pyi`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

const STUB: &str = "../../python/cordwood/_core.pyi";
const PARTS: &str = "../../python/cordwood/_stubs";
const QUOTES: &str = "\"\"\"";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={STUB}");
    // of a directory, cargo looks at its files, too
    println!("cargo::rerun-if-changed={PARTS}");
    let mut documented = BTreeMap::new();
    for file in stub_files()? {
        for (name, docstring) in docstrings(&file, &fs::read_to_string(&file)?)? {
            if documented.insert(name.clone(), docstring).is_some() {
                return Err(format!("{}: {name} is documented a second time", file.display()).into());
            }
        }
    }
    let mut arms = String::new();
    for (name, docstring) in documented {
        // a Rust string literal by `Debug` is correct for these texts
        writeln!(arms, "    ({name}) => {{ {docstring:?} }};")?;
    }
    let missing = r#"concat!("the stub has no docstring for ", stringify!($($name)*))"#;
    writeln!(arms, "    ($($name:tt)*) => {{ compile_error!({missing}) }};")?;
    let out = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    fs::write(Path::new(&out).join("stub_doc.rs"), format!("macro_rules! stub_doc {{\n{arms}}}\n"))?;
    Ok(())
}

/// The stub and its parts, in an order that does not depend on the file system.
fn stub_files() -> io::Result<Vec<PathBuf>> {
    let parts = fs::read_dir(PARTS)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let mut files: Vec<_> =
        parts.into_iter().filter(|path| path.extension().is_some_and(|suffix| suffix == "pyi")).collect();
    files.push(STUB.into());
    files.sort();
    Ok(files)
}

/// The docstrings of a file formatted by `ruff format`, by name: `module`, `Class`, `Class.method` or
/// `function`. A docstring begins on a line after its `class` or `def`. Of the files' own docstrings, only
/// that of the stub is returned.
fn docstrings(file: &Path, stub: &str) -> Result<Vec<(String, String)>, String> {
    let file_name = file.display();
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
                let next = lines
                    .next()
                    .ok_or_else(|| format!("{file_name}: the docstring of {name} does not end"))?;
                // as inspect.cleandoc does: the indentation of examples is kept
                line = next.get(indent..).unwrap_or_default();
            }
            docstring.push_str(line.strip_suffix(QUOTES).unwrap_or_default());
            if docstring.contains('\\') {
                return Err(format!(
                    "{file_name}: the docstring of {name} has an escape, which is not supported"
                ));
            }
            if name != "module" || file == Path::new(STUB) {
                found.push((name.clone(), docstring.trim_end().to_owned()));
            }
        }
    }
    Ok(found)
}

fn identifier(text: &str) -> &str {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or_default()
}
