//! Words in both languages, side by side, so that neither is forgotten. Looked up at the edge, never a key.

/// Language of the text a person reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

/// One text in both languages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    en: String,
    zh: String,
}

impl Text {
    /// The English and the Chinese wording.
    pub fn new(en: impl Into<String>, zh: impl Into<String>) -> Self {
        Self { en: en.into(), zh: zh.into() }
    }

    /// A name or number that reads the same in both languages.
    pub fn same(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { zh: text.clone(), en: text }
    }

    /// The wording in `lang`.
    #[must_use]
    pub fn get(&self, lang: Lang) -> &str {
        match lang {
            Lang::En => &self.en,
            Lang::Zh => &self.zh,
        }
    }
}
