//! HTML with the one escape: whatever is text or the value of an attribute goes through here, and nowhere else.

use std::fmt::Write as _;

use crate::analysis::{Lang, Text};
use crate::output::Redaction;

/// Attributes of an element, by name.
pub(super) type Attributes<'a> = &'a [(&'a str, &'a str)];

/// A piece of a page that grows at its end.
#[derive(Debug)]
pub(super) struct Html<'a> {
    text: String,
    redaction: &'a Redaction,
}

impl<'a> Html<'a> {
    pub(super) fn new(redaction: &'a Redaction) -> Self {
        Self { text: String::new(), redaction }
    }

    /// The markup.
    pub(super) fn finish(self) -> String {
        self.text
    }

    /// Begins an element.
    pub(super) fn open(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.text.push('<');
        self.text.push_str(tag);
        for (name, value) in attributes {
            self.text.push(' ');
            self.text.push_str(name);
            self.text.push_str("=\"");
            self.text(value);
            self.text.push('"');
        }
        self.text.push('>');
    }

    /// Ends an element.
    pub(super) fn close(&mut self, tag: &'static str) {
        self.text.push_str("</");
        self.text.push_str(tag);
        self.text.push('>');
    }

    /// An element with text in it.
    pub(super) fn element(&mut self, tag: &'static str, attributes: Attributes<'_>, text: &str) {
        self.open(tag, attributes);
        self.text(text);
        self.close(tag);
    }

    /// An element with words in it.
    pub(super) fn words(&mut self, tag: &'static str, attributes: Attributes<'_>, words: &Text) {
        self.open(tag, attributes);
        self.both(words);
        self.close(tag);
    }

    /// Words in both languages, of which the page shows one.
    pub(super) fn both(&mut self, words: &Text) {
        let (en, zh) = (words.get(Lang::En), words.get(Lang::Zh));
        if en == zh {
            self.text(en);
            return;
        }
        for (lang, text) in [("en", en), ("zh", zh)] {
            self.open("span", &[("lang", lang)]);
            self.prose(text);
            self.close("span");
        }
    }

    /// A sentence, in which backticks mark what is to be typed.
    fn prose(&mut self, text: &str) {
        for (place, piece) in text.split('`').enumerate() {
            if place % 2 == 1 {
                self.open("code", &[]);
                self.breakable(piece);
                self.close("code");
            } else {
                self.text(piece);
            }
        }
    }

    /// Code, which may break behind what joins its words and not within one.
    fn breakable(&mut self, code: &str) {
        const SHORT: usize = 24;
        let code = &self.redaction.apply(code);
        if code.len() <= SHORT {
            return self.text(code);
        }
        let mut left = code.len();
        for piece in code.split_inclusive(['.', '(', ',', '=', ':', '/']) {
            self.text(piece);
            left -= piece.len();
            if left > 1 {
                self.text.push_str("<wbr>");
            }
        }
    }

    /// Text.
    pub(super) fn text(&mut self, text: &str) {
        for symbol in visible(&self.redaction.apply(text)).chars() {
            match symbol {
                '&' => self.text.push_str("&amp;"),
                '<' => self.text.push_str("&lt;"),
                '>' => self.text.push_str("&gt;"),
                '"' => self.text.push_str("&quot;"),
                '\'' => self.text.push_str("&#39;"),
                other => self.text.push(other),
            }
        }
    }

    /// Markup of our own making, with no byte of the snapshot that was not escaped.
    pub(super) fn markup(&mut self, markup: &str) {
        self.text.push_str(markup);
    }
}

/// The text with what would hide or reorder its neighbours spelled out: control characters and marks of direction.
pub(super) fn visible(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for symbol in text.chars() {
        if is_hidden(symbol) {
            let _infallible = write!(shown, "⟨U+{:04X}⟩", u32::from(symbol));
        } else {
            shown.push(symbol);
        }
    }
    shown.into()
}

fn is_hidden(symbol: char) -> bool {
    (symbol.is_control() && symbol != '\n' && symbol != '\t')
        || matches!(symbol, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// JSON as the content of a script element: nothing in it can end the element, whatever it holds.
pub(super) fn island(value: &serde_json::Value, redaction: &Redaction) -> String {
    let json = clean(&redaction.value(value)).to_string();
    let mut text = String::with_capacity(json.len());
    for symbol in json.chars() {
        match symbol {
            '<' | '>' | '&' => {
                let _infallible = write!(text, "\\u{:04x}", u32::from(symbol));
            }
            other => text.push(other),
        }
    }
    text
}

/// The value with what would hide or reorder its neighbours spelled out.
fn clean(value: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::String(text) => Value::String(visible(text).into_owned()),
        Value::Array(items) => items.iter().map(clean).collect(),
        Value::Object(map) => {
            map.iter().map(|(key, item)| (visible(key).into_owned(), clean(item))).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        let redaction = Redaction::none();
        let mut html = Html::new(&redaction);
        html.element("p", &[("title", "\"><script>'")], "</p><b>&amp;");
        assert_eq!(
            html.finish(),
            "<p title=\"&quot;&gt;&lt;script&gt;&#39;\">&lt;/p&gt;&lt;b&gt;&amp;amp;</p>"
        );
    }

    #[test]
    fn marks_of_direction_are_spelled_out() {
        assert_eq!(visible("a\u{202e}gpj.py"), "a⟨U+202E⟩gpj.py");
        assert_eq!(visible("\u{1b}[31m"), "⟨U+001B⟩[31m");
        assert_eq!(visible("内存 a\tb"), "内存 a\tb");
    }

    #[test]
    fn json_cannot_end_its_element() {
        let text = island(&json!({"a": "</script><!-- \u{2028}"}), &Redaction::none());
        assert_eq!(text, r#"{"a":"\u003c/script\u003e\u003c!-- ⟨U+2028⟩"}"#);
    }
}
