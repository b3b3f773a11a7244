//! Names of users, learned from paths to home folders, and replaced wherever they stand as a word.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;

use super::ordinary::ORDINARY;
use crate::engine::{BASE, Engine, OWN, row};
use crate::error::Result;

/// What stands for a name.
const STAND_IN: &str = "user";
/// Folders that hold the home folders of users.
const HOMES: [&str; 4] = ["home", "homes", "users", "documents and settings"];
/// A name longer than this is none.
const LONGEST: usize = 64;
row! {
    /// Frames of a call stack.
    pub(super) struct StackText from "call_stacks" {
        /// Frames as JSON.
        frames_json: String,
    }
}

row! {
    /// The name of an annotation.
    pub(super) struct AnnotationText from "annotations" {
        /// What the program called it.
        name: Option<String>,
    }
}

row! {
    /// What the snapshot says of itself.
    pub(super) struct SettingsText from "snapshot" {
        /// Settings of the allocator as JSON.
        allocator_settings: Option<String>,
    }
}

row! {
    /// What the program attached to an event.
    pub(super) struct EventText from "traces" {
        /// As JSON.
        user_metadata: Option<String>,
    }
}

/// Names, in lower case, the longest first.
#[derive(Debug, Default)]
pub(super) struct Names {
    found: BTreeSet<(std::cmp::Reverse<usize>, String)>,
}

impl Names {
    /// The names in the paths of a snapshot, of its sources and of whoever runs this.
    pub(super) fn learn(engine: &Engine, sources: &[&Path]) -> Result<Self> {
        let mut names = Self::default();
        for source in sources {
            names.add(&source.to_string_lossy());
            if let Ok(whole) = source.canonicalize() {
                names.add(&whole.to_string_lossy());
            }
        }
        for variable in ["HOME", "USERPROFILE"] {
            if let Some(home) = std::env::var_os(variable) {
                names.add(&home.to_string_lossy());
                names.keep(&Path::new(&home).file_name().unwrap_or_default().to_string_lossy());
            }
        }
        names.learn_from(engine, OWN)?;
        if engine.is_attached(BASE) {
            names.learn_from(engine, BASE)?;
        }
        Ok(names)
    }

    /// Learns from every text of a snapshot that may hold paths.
    fn learn_from(&mut self, engine: &Engine, schema: &str) -> Result<()> {
        for row in engine.scan_in::<StackText>(schema)? {
            self.add(&row?.frames_json);
        }
        for row in engine.scan_in::<AnnotationText>(schema)? {
            self.add(row?.name.as_deref().unwrap_or_default());
        }
        for row in engine.scan_in::<SettingsText>(schema)? {
            self.add(row?.allocator_settings.as_deref().unwrap_or_default());
        }
        let mut before = String::new();
        for row in engine.scan_in::<EventText>(schema)? {
            // Events of one range have the same text.
            if let Some(text) = row?.user_metadata.filter(|text| *text != before) {
                self.add(&text);
                before = text;
            }
        }
        Ok(())
    }

    /// Learns from a text that may hold paths.
    pub(super) fn add(&mut self, text: &str) {
        if text.contains("/root") {
            self.keep("root");
        }
        let mut parts = text.split(['/', '\\']).peekable();
        let mut is_home = false;
        while let Some(part) = parts.next() {
            if let Some((before, name)) = part.rsplit_once('~')
                && parts.peek().is_some()
                && !before.ends_with(char::is_alphanumeric)
            {
                self.keep(name);
            }
            // JSON doubles what separates the parts of a Windows path.
            if part.is_empty() && is_home {
                continue;
            }
            if is_home {
                let end = part.find(|symbol: char| symbol.is_control() || "\"'<>|*?:,;()`".contains(symbol));
                let name = part.get(..end.unwrap_or(part.len())).unwrap_or_default();
                // A blank belongs to a name only inside a path.
                let is_inside = end.is_none() && parts.peek().is_some();
                let name = if is_inside { name } else { name.split(' ').next().unwrap_or_default() };
                self.keep(name);
                if name.contains(' ') {
                    name.split(' ').filter(|word| word.chars().count() > 2).for_each(|word| self.keep(word));
                }
            }
            let folder = part.rsplit(|symbol: char| "\"'<>|`,;(= ".contains(symbol)).next().unwrap_or(part);
            is_home = HOMES.iter().any(|home| {
                folder.eq_ignore_ascii_case(home)
                    || (home.contains(' ') && part.to_ascii_lowercase().ends_with(home))
            });
        }
    }

    fn keep(&mut self, name: &str) {
        let name = name.trim().to_lowercase();
        let is_name =
            name.chars().filter(|symbol| symbol.is_alphanumeric()).count() > 1 && name.len() <= LONGEST;
        // A number of an employee cannot be told from one that was measured; in a path it goes with the folders.
        let is_name = is_name && name.chars().any(char::is_alphabetic);
        if is_name && !ORDINARY.contains(&name.as_str()) {
            self.found.insert((std::cmp::Reverse(name.len()), name));
        }
    }

    /// The text without the names.
    pub(super) fn replace<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for (_, name) in &self.found {
            if let Some(without) = without(&text, name) {
                text = Cow::Owned(without);
            }
        }
        text
    }
}

/// The text with something else for a name that stands between what is neither letter nor digit; none where it does not.
fn without(text: &str, name: &str) -> Option<String> {
    let mut made: Option<String> = None;
    let mut done = 0;
    let mut before = None;
    for (at, symbol) in text.char_indices() {
        let is_start = at >= done && before.is_none_or(|before: char| !before.is_alphanumeric());
        before = Some(symbol);
        if !is_start {
            continue;
        }
        let Some(length) = begins(text.get(at..).unwrap_or_default(), name) else { continue };
        let made = made.get_or_insert_with(|| String::with_capacity(text.len()));
        made.push_str(text.get(done..at).unwrap_or_default());
        made.push_str(STAND_IN);
        done = at + length;
    }
    let mut made = made?;
    made.push_str(text.get(done..).unwrap_or_default());
    Some(made)
}

/// Bytes of a name that a text begins with, in whatever case, if no letter and no digit follows.
fn begins(text: &str, name: &str) -> Option<usize> {
    let mut symbols = text.char_indices();
    for expected in name.chars() {
        let (_, found) = symbols.next()?;
        if !found.to_lowercase().eq(std::iter::once(expected)) {
            return None;
        }
    }
    match symbols.next() {
        Some((_, next)) if next.is_alphanumeric() => None,
        Some((at, _)) => Some(at),
        None => Some(text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let mut names = Names::default();
        names.add(text);
        names.found.into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn names_are_what_stands_behind_the_folder_of_homes() {
        for (text, expected) in [
            ("/home/ada/run.py", vec!["ada"]),
            (
                r#"[{"filename": "/home/ada/a.py"}, {"filename": "/Users/Grace.H/b.py"}]"#,
                vec!["grace.h", "ada"],
            ),
            (r"C:\\Users\\bob\\x.py", vec!["bob"]),
            (r"C:\Users\Ada Lovelace\x.py", vec!["ada lovelace", "lovelace", "ada"]),
            ("/root/run.py", vec!["root"]),
            ("saved to /home/eve", vec!["eve"]),
            ("saved to /home/eve and gone", vec!["eve"]),
            ("/mnt/nfs/homes/张伟/run.py", vec!["张伟"]),
            ("~carol/run.py of ~ and ~5", vec!["carol"]),
            ("/home/shared/run.py, /home/x/run.py, /home/ascend/a.py, /home/1010/a.py", vec![]),
            ("at home/work balance", vec![]),
        ] {
            assert_eq!(names(text), expected, "{text}");
        }
    }

    #[test]
    fn a_name_is_replaced_as_a_word_and_in_no_other() {
        let mut names = Names::default();
        names.add("/home/ada/x, /home/ada.lovelace/x");
        for (text, expected) in [
            ("Ada's run on ada-laptop", "user's run on user-laptop"),
            ("ada_train by ADA.Lovelace", "user_train by user"),
            ("adagrad, nada, radar", "adagrad, nada, radar"),
            ("训练 ada 完成", "训练 user 完成"),
            ("", ""),
        ] {
            assert_eq!(names.replace(text), expected, "{text}");
        }
    }
}
