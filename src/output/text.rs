//! Findings and figures for a terminal. Knows no analysis; nothing depends on colour.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr as _;

use crate::analysis::{Cell, Figure, Finding, ImportNote, Lang, SnapshotFacts, TableFigure, Target, Text};
use crate::quantity;

/// Width of the longest mark before a finding, `[critical]`.
const MARK_WIDTH: usize = 10;

/// What a page of text is made of.
#[derive(Debug)]
pub struct Page<'a> {
    /// Name of the analysis.
    pub mode: &'a str,
    /// The snapshot it speaks of.
    pub snapshot: Option<&'a SnapshotFacts>,
    /// What was left out or repaired while reading.
    pub notes: &'a [ImportNote],
    /// Judgements, worst first.
    pub findings: &'a [Finding],
    /// What to show.
    pub figures: &'a [Figure],
}

/// Writes the page.
///
/// # Errors
/// The output is closed or full.
pub fn write_page(out: &mut dyn Write, page: &Page<'_>, lang: Lang) -> io::Result<()> {
    if let Some(snapshot) = page.snapshot {
        heading(out, page.mode, snapshot, lang)?;
    }
    if !page.findings.is_empty() {
        writeln!(out)?;
    }
    for finding in page.findings {
        let word = finding.severity.word();
        let mark = format!("[{}]", word.get(lang));
        let space = " ".repeat(MARK_WIDTH.saturating_sub(mark.width()));
        let subject = finding.subject.words();
        writeln!(out, "{mark}{space} {}: {}", subject.get(lang), finding.message.get(lang))?;
    }
    for figure in page.figures {
        match figure {
            Figure::Table(table) => {
                writeln!(out)?;
                write_table(out, table, lang)?;
            }
            Figure::Note(text) => writeln!(out, "\n{}", text.get(lang))?,
            Figure::Heading(text) => {
                let text = text.get(lang);
                writeln!(out, "\n{text}\n{}", "=".repeat(text.width()))?;
            }
            Figure::Chart(_) => {}
        }
    }
    write_notes(out, page.notes, lang)
}

fn heading(out: &mut dyn Write, mode: &str, snapshot: &SnapshotFacts, lang: Lang) -> io::Result<()> {
    let protocol = snapshot.protocol().map_or(String::new(), |protocol| {
        let text = Text::new(format!(", protocol {protocol}"), format!("，协议 {protocol}"));
        text.get(lang).to_owned()
    });
    let (events, stacks) = (snapshot.event_count(), snapshot.stack_count());
    writeln!(
        out,
        "npusnap {mode} · {} · {} · {}{protocol}",
        snapshot.source_name(),
        quantity::bytes(snapshot.source_bytes()),
        snapshot.producer(),
    )?;
    let counts = Text::new(
        format!(
            "{}, {}",
            quantity::counted(events, "trace entry", "trace entries"),
            quantity::counted(stacks, "call stack", "call stacks")
        ),
        format!("{} 条轨迹记录，{} 个调用栈", quantity::count(events), quantity::count(stacks)),
    );
    writeln!(out, "{}", counts.get(lang))
}

/// Only what makes numbers wrong or incomplete is spelled out; the rest is a query away.
fn write_notes(out: &mut dyn Write, notes: &[ImportNote], lang: Lang) -> io::Result<()> {
    let losses: Vec<&ImportNote> = notes.iter().filter(|note| note.is_loss()).collect();
    if !losses.is_empty() {
        let title = Text::new("Read with losses", "读取时有缺失");
        writeln!(out, "\n{}", title.get(lang))?;
    }
    for note in &losses {
        writeln!(out, "  {} ({}): {}", note.name, quantity::count(note.value), note.meaning().get(lang))?;
    }
    Ok(())
}

fn write_table(out: &mut dyn Write, table: &TableFigure, lang: Lang) -> io::Result<()> {
    let headings: Vec<(String, bool)> =
        table.headings.iter().map(|text| (text.get(lang).to_owned(), false)).collect();
    let mut rows: Vec<Vec<(String, bool)>> = table
        .rows
        .iter()
        .map(|row| {
            row.iter()
                .map(|cell| match cell {
                    Cell::Quantity(quantity) => (quantity.text(), true),
                    Cell::Link(text, Target::Event { .. }) => (text.get(lang).to_owned(), true),
                    Cell::Text(text) | Cell::Link(text, _) => (text.get(lang).to_owned(), false),
                })
                .collect()
        })
        .collect();
    // A heading stands over its numbers.
    let headings: Vec<(String, bool)> = headings
        .into_iter()
        .enumerate()
        .map(|(place, (text, _))| (text, rows.iter().any(|row| row.get(place).is_some_and(|cell| cell.1))))
        .collect();
    rows.insert(0, headings);
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|place| {
            rows.iter().filter_map(|row| row.get(place)).map(|cell| cell.0.width()).max().unwrap_or(0)
        })
        .collect();
    writeln!(out, "{}", table.title.get(lang))?;
    for row in &rows {
        let mut line = String::from(" ");
        for ((text, right), width) in row.iter().zip(&widths) {
            let space = " ".repeat(width.saturating_sub(text.width()));
            line.push(' ');
            if *right {
                line.push_str(&space);
                line.push_str(text);
            } else {
                line.push_str(text);
                line.push_str(&space);
            }
            line.push(' ');
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
