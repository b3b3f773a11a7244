//! Rows as JSON objects.

use std::io;

use arrow::datatypes::Schema;

use super::column::Column;

/// The columns' names, each once. A join can give two columns one name; an object must not have a key twice, or readers
/// keep one of the values only: the later ones get a number behind.
pub(super) fn distinct_names(schema: &Schema) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for field in schema.fields() {
        let mut name = field.name().clone();
        let mut number = 2;
        while taken.contains(&name) || (number > 2 && schema.column_with_name(&name).is_some()) {
            name = format!("{}_{number}", field.name());
            number += 1;
        }
        taken.push(name);
    }
    taken
}

/// The names as JSON keys.
pub(super) fn keys(schema: &Schema) -> io::Result<Vec<Vec<u8>>> {
    distinct_names(schema).iter().map(|name| Ok(serde_json::to_vec(name)?)).collect()
}

/// Appends a row.
pub(super) fn append_object(
    keys: &[Vec<u8>],
    columns: &mut [Column<'_>],
    row: usize,
    line: &mut Vec<u8>,
) -> io::Result<()> {
    for (index, (key, column)) in keys.iter().zip(columns).enumerate() {
        line.push(if index == 0 { b'{' } else { b',' });
        line.extend_from_slice(key);
        line.push(b':');
        column.append_json(row, line)?;
    }
    line.push(b'}');
    Ok(())
}
