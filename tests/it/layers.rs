//! A module names only modules of lower layers, and DataFusion stays behind its one door.

use std::fs;
use std::path::{Path, PathBuf};

/// Lowest first. The first three are leaves: they name no other layer at all.
const LAYERS: &[&str] = &[
    "pickle", "schema", "quantity", "error", "snapshot", "replay", "store", "engine", "analysis", "output",
    "export", "report", "cli",
];
const LEAVES: usize = 3;

/// Names after `crate::`, also inside `crate::{a, b}`; line comments do not count.
fn imports(source: &str) -> Vec<String> {
    let code: String =
        source.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n");
    code.match_indices("crate::")
        .filter(|(at, _)| !code[..*at].ends_with('$'))
        .flat_map(|(at, mark)| {
            let rest = &code[at + mark.len()..];
            let list = rest.strip_prefix('{').map(|inner| &inner[..inner.find('}').unwrap_or(0)]);
            list.map_or(vec![rest], |names| names.split(',').collect())
                .into_iter()
                .map(|name| name.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
                .collect::<Vec<String>>()
        })
        .collect()
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn all_sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    sources(&root, &mut found);
    found.sort();
    found
        .into_iter()
        .map(|path| (path.strip_prefix(&root).unwrap().to_owned(), fs::read_to_string(&path).unwrap()))
        .collect()
}

/// Layer of a file under `src`, by its first path component.
fn layer(path: &Path) -> Option<usize> {
    let first = path.components().next()?.as_os_str().to_str()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    LAYERS.iter().position(|layer| *layer == name)
}

#[test]
fn modules_name_only_lower_layers() {
    let mut violations = Vec::new();
    for (path, source) in all_sources() {
        let Some(own) = layer(&path) else { continue };
        for import in imports(&source) {
            let Some(used) = LAYERS.iter().position(|layer| *layer == import) else { continue };
            if used > own || (own < LEAVES && used != own) {
                violations.push(format!("{}: {} may not use {}", path.display(), LAYERS[own], LAYERS[used]));
            }
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[test]
fn datafusion_is_named_in_the_engine_alone() {
    let named: Vec<String> = all_sources()
        .into_iter()
        .filter(|(path, source)| {
            !path.starts_with("engine")
                && source.lines().any(|line| {
                    let code = line.split("//").next().unwrap_or("");
                    code.contains("datafusion::")
                })
        })
        .map(|(path, _)| path.display().to_string())
        .collect();
    assert!(named.is_empty(), "datafusion is named in {}", named.join(", "));
}

#[test]
fn files_stay_small_enough_to_hold_one_idea() {
    let long: Vec<String> = all_sources()
        .into_iter()
        .map(|(path, source)| (path, source.lines().count()))
        .filter(|(_, lines)| *lines > 500)
        .map(|(path, lines)| format!("{}: {lines} lines", path.display()))
        .collect();
    assert!(long.is_empty(), "over 500 lines: {}", long.join(", "));
}
