//! Types and values of macro parameters, in words that do not name an engine.

/// A type that parameters and columns of relations have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlType {
    /// 64-bit integer.
    Bigint,
    /// 64-bit float.
    Double,
    /// Text.
    Varchar,
}

impl SqlType {
    /// Name in SQL.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bigint => "BIGINT",
            Self::Double => "DOUBLE",
            Self::Varchar => "VARCHAR",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::Bigint, Self::Double, Self::Varchar].into_iter().find(|sql_type| sql_type.as_str() == text)
    }
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Mostly: no restriction.
    Null,
    /// For BIGINT.
    Integer(i64),
    /// For DOUBLE.
    Real(f64),
    /// For VARCHAR.
    Text(String),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl Value {
    /// Reads a value of a type from text: the header's way, and the command line's.
    #[must_use]
    pub fn parse(sql_type: SqlType, text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case("null") {
            return Some(Self::Null);
        }
        match sql_type {
            SqlType::Bigint => text.parse().ok().map(Self::Integer),
            SqlType::Double => text.parse().ok().filter(|real: &f64| real.is_finite()).map(Self::Real),
            SqlType::Varchar => {
                let inner = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                Some(Self::Text(inner.map_or_else(|| text.to_owned(), |inner| inner.replace("''", "'"))))
            }
        }
    }

    /// Reads a value whose type nobody has said: `null`, an integer, a number, else a text; `'10'` is a text too.
    #[must_use]
    pub fn infer(text: &str) -> Self {
        [SqlType::Bigint, SqlType::Double, SqlType::Varchar]
            .into_iter()
            .find_map(|sql_type| Self::parse(sql_type, text))
            .unwrap_or(Self::Null)
    }

    /// The value as it is written in SQL.
    #[must_use]
    pub fn literal(&self) -> String {
        match self {
            Self::Null => "NULL".to_owned(),
            Self::Integer(integer) => integer.to_string(),
            Self::Real(real) => format!("{real:?}"),
            Self::Text(text) => format!("'{}'", text.replace('\'', "''")),
        }
    }

    /// Whether a parameter of `sql_type` can have it.
    #[must_use]
    pub fn fits(&self, sql_type: SqlType) -> bool {
        matches!(
            (self, sql_type),
            (Self::Null, _)
                | (Self::Integer(_), SqlType::Bigint | SqlType::Double)
                | (Self::Real(_), SqlType::Double)
                | (Self::Text(_), SqlType::Varchar)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_the_narrowest_thing_it_can_be() {
        for (text, value) in [
            ("10", Value::Integer(10)),
            ("-9223372036854775808", Value::Integer(i64::MIN)),
            ("9223372036854775808", Value::Real(9_223_372_036_854_775_808.0)),
            ("0.5", Value::Real(0.5)),
            ("1e3", Value::Real(1000.0)),
            ("null", Value::Null),
            ("'10'", "10".into()),
            ("'null'", "null".into()),
            ("it's", "it's".into()),
            ("inf", "inf".into()),
            ("", "".into()),
        ] {
            assert_eq!(Value::infer(text), value, "{text}");
        }
    }
}
