//! Rows as aligned columns. Widths come from the first rows; what is wider later just takes its place.
//!
//! On a terminal, texts are shortened until a row fits; in a file or a pipe nothing is ever cut.

use std::io::{self, Write};

use arrow::datatypes::Schema;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::rows::{Column, is_number};

/// Rows that are held back until the widths are known.
const MEASURED: usize = 1000;
/// A text column is not made narrower than this.
const NARROWEST: usize = 8;
const GAP: &str = "  ";

/// A table on its way out.
#[derive(Debug)]
pub(super) struct Table {
    names: Vec<String>,
    numbers: Vec<bool>,
    terminal: Option<usize>,
    /// Rows held back.
    rows: Vec<Vec<String>>,
    /// Known once the header is out.
    widths: Option<Vec<usize>>,
}

impl Table {
    pub(super) fn new(schema: &Schema, terminal: Option<usize>) -> Self {
        Self {
            names: schema.fields().iter().map(|field| printable(field.name())).collect(),
            numbers: schema.fields().iter().map(|field| is_number(field.data_type())).collect(),
            terminal,
            rows: Vec::new(),
            widths: None,
        }
    }

    pub(super) fn write(
        &mut self,
        columns: &mut [Column<'_>],
        count: usize,
        out: &mut impl Write,
    ) -> io::Result<()> {
        for row in 0..count {
            let mut cells = Vec::with_capacity(columns.len());
            for column in columns.iter_mut() {
                cells.push(column.text(row)?.map_or_else(|| "NULL".to_owned(), |text| printable(&text)));
            }
            if let Some(widths) = &self.widths {
                self.line(&cells, widths, out)?;
                continue;
            }
            self.rows.push(cells);
            if self.rows.len() == MEASURED {
                self.start(out)?;
            }
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.widths.is_none() { self.start(out) } else { Ok(()) }
    }

    /// Writes the header and the rows held back.
    fn start(&mut self, out: &mut impl Write) -> io::Result<()> {
        let widths = self.measure();
        let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        self.line(&self.names, &widths, out)?;
        self.line(&rules, &widths, out)?;
        for cells in std::mem::take(&mut self.rows) {
            self.line(&cells, &widths, out)?;
        }
        self.widths = Some(widths);
        Ok(())
    }

    fn measure(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.names.iter().map(|name| name.width()).collect();
        for cells in &self.rows {
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = cell.width().max(*width);
            }
        }
        if let Some(terminal) = self.terminal {
            self.shrink(&mut widths, terminal);
        }
        widths
    }

    /// Takes from the widest text column until a row fits; a shortened number would be another number.
    fn shrink(&self, widths: &mut [usize], terminal: usize) {
        let gaps = GAP.len().saturating_mul(widths.len().saturating_sub(1));
        while widths.iter().sum::<usize>().saturating_add(gaps) > terminal {
            let widest = widths
                .iter_mut()
                .zip(&self.numbers)
                .filter(|(width, number)| !**number && **width > NARROWEST)
                .max_by_key(|(width, _)| **width);
            match widest {
                Some((width, _)) => *width = width.saturating_sub(1),
                None => break,
            }
        }
    }

    fn line(&self, cells: &[String], widths: &[usize], out: &mut impl Write) -> io::Result<()> {
        let mut line = String::new();
        for (index, ((cell, width), number)) in cells.iter().zip(widths).zip(&self.numbers).enumerate() {
            if index > 0 {
                line.push_str(GAP);
            }
            let cell = match self.terminal {
                Some(_) if !number => cut(cell, *width),
                _ => cell.clone(),
            };
            let padding = " ".repeat(width.saturating_sub(cell.width()));
            if *number {
                line.push_str(&padding);
                line.push_str(&cell);
            } else {
                line.push_str(&cell);
                line.push_str(&padding);
            }
        }
        let line = line.trim_end();
        match self.terminal {
            Some(terminal) => writeln!(out, "{}", cut(line, terminal)),
            None => writeln!(out, "{line}"),
        }
    }
}

/// The text in at most `width` columns, `…` at its end where it was cut.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = 0;
    for symbol in text.chars() {
        let wide = symbol.width().unwrap_or(0);
        if used + wide >= width {
            break;
        }
        used += wide;
        short.push(symbol);
    }
    short.push('…');
    short
}

/// The text without line breaks and control codes, which would break the table or the terminal.
pub(super) fn printable(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    text.chars().fold(String::with_capacity(text.len()), |mut safe, symbol| {
        if symbol.is_control() {
            safe.extend(symbol.escape_default());
        } else {
            safe.push(symbol);
        }
        safe
    })
}
