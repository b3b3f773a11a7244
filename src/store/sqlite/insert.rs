//! Rows that SQLite inserts itself: those of the tables that stay small.

use arrow::array::RecordBatch;
use rusqlite::{Connection, Statement, ToSql};

use super::values::Values;
use crate::schema::Table;

/// Rows per INSERT: about the point where more of them save nothing.
const ROWS_PER_INSERT: usize = 100;

/// Inserts the rows of `batch` into `table`.
pub(super) fn insert(
    connection: &Connection,
    table: &Table,
    batch: &RecordBatch,
) -> Result<(), rusqlite::Error> {
    let rest = batch.num_rows() % ROWS_PER_INSERT;
    let whole = batch.num_rows() - rest;
    if whole > 0 {
        let mut statement = connection.prepare(&statement(table, ROWS_PER_INSERT))?;
        // Half of the columns of a trace do not change within a batch, and a statement keeps what was bound.
        let (steady, varying) = columns(table, batch)?.into_iter().partition::<Vec<_>, _>(Column::is_steady);
        steady.iter().try_for_each(|column| column.bind(&mut statement, 0))?;
        for offset in (0..whole).step_by(ROWS_PER_INSERT) {
            varying.iter().try_for_each(|column| column.bind(&mut statement, offset))?;
            statement.raw_execute()?;
        }
    }
    if rest > 0 {
        let mut statement = connection.prepare(&statement(table, rest))?;
        columns(table, batch)?.iter().try_for_each(|column| column.bind(&mut statement, whole))?;
        statement.raw_execute()?;
    }
    Ok(())
}

/// `INSERT` of `rows` rows with one parameter per cell.
fn statement(table: &Table, rows: usize) -> String {
    let row = format!("({})", vec!["?"; table.sqlite_columns().count()].join(","));
    format!("INSERT INTO {} VALUES {}", table.name, vec![row; rows].join(","))
}

/// A column of a batch on its way into a statement.
struct Column<'a> {
    /// Number of its parameter in the first row.
    first: usize,
    /// Parameters of a row.
    width: usize,
    values: Values<'a>,
}

fn columns<'a>(table: &Table, batch: &'a RecordBatch) -> Result<Vec<Column<'a>>, rusqlite::Error> {
    let values = Values::of_table(table, batch)?;
    let width = values.len();
    Ok(values.into_iter().zip(1..).map(|(values, first)| Column { first, width, values }).collect())
}

impl Column<'_> {
    fn is_steady(&self) -> bool {
        self.values.is_steady()
    }

    /// Binds as many rows from `offset` on as there are, and as the statement has parameters for.
    fn bind(&self, statement: &mut Statement<'_>, offset: usize) -> Result<(), rusqlite::Error> {
        let parameters = (self.first..=statement.parameter_count()).step_by(self.width);
        let rows = statement.parameter_count() / self.width;
        match self.values {
            Values::Integer(values) => bind(statement, parameters, values.slice(offset, rows).iter()),
            Values::Real(values) => bind(statement, parameters, values.slice(offset, rows).iter()),
            Values::Text(values) => bind(statement, parameters, values.slice(offset, rows).iter()),
            Values::Interned(codes, names) => {
                let codes = codes.slice(offset, rows);
                let names = codes.iter().map(|code| Some(names.value(usize::try_from(code?).ok()?)));
                bind(statement, parameters, names)
            }
        }
    }
}

fn bind<T: ToSql>(
    statement: &mut Statement<'_>,
    parameters: impl Iterator<Item = usize>,
    values: impl Iterator<Item = Option<T>>,
) -> Result<(), rusqlite::Error> {
    for (parameter, value) in parameters.zip(values) {
        statement.raw_bind_parameter(parameter, value)?;
    }
    Ok(())
}
