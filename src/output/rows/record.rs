//! Rows as records of a CSV.

use std::io;

use arrow::datatypes::Schema;

use super::column::Column;

/// The line with the columns' names.
pub(super) fn header(schema: &Schema) -> Vec<u8> {
    let names = schema.fields().iter().map(|field| field.name().as_bytes());
    let names = names.map(|name| if needs_quotes(name) { quoted(name) } else { name.to_vec() });
    let mut line = names.collect::<Vec<_>>().join(&b',');
    line.push(b'\n');
    line
}

/// Appends a row.
pub(super) fn append_record(columns: &mut [Column<'_>], row: usize, line: &mut Vec<u8>) -> io::Result<()> {
    for (index, column) in columns.iter_mut().enumerate() {
        if index > 0 {
            line.push(b',');
        }
        let start = line.len();
        if column.append_text(row, line)? {
            let field = line.get(start..).unwrap_or_default();
            if needs_quotes(field) {
                let quoted = quoted(field);
                line.truncate(start);
                line.extend_from_slice(&quoted);
            }
        }
    }
    line.push(b'\n');
    Ok(())
}

/// Whether the text would not be read back from a CSV as it is; an empty one would be taken for NULL.
fn needs_quotes(field: &[u8]) -> bool {
    field.is_empty() || field.iter().any(|byte| matches!(byte, b'"' | b',' | b'\n' | b'\r'))
}

fn quoted(field: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(field.len() + 2);
    quoted.push(b'"');
    for byte in field {
        if *byte == b'"' {
            quoted.push(b'"');
        }
        quoted.push(*byte);
    }
    quoted.push(b'"');
    quoted
}
