//! The `tables!` macro: one text gives the row struct, the column builder, the Arrow schema, the DDL and the docs.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

/// Version of the tables below. It goes into every store; a reader refuses another one.
pub const VERSION: i64 = 4;

/// Rows that wait in the nearest cache, to go into their columns together: one by one they would go to as many places as there
/// are columns.
pub(crate) const WAITING_ROWS: usize = 64;

/// Collects rows a column at a time.
pub(crate) trait ByColumn {
    /// The columns, to each of which the values of `count` rows are to be appended.
    fn by_column(&mut self, count: usize) -> &mut Self;
}

/// A table as it is declared.
#[derive(Debug)]
pub struct Table {
    /// Name in SQL, and the stem of its Parquet file.
    pub name: &'static str,
    /// What one row is.
    pub doc: &'static str,
    /// Columns in order.
    pub columns: &'static [Column],
    /// Indexes the SQLite store makes after loading: name and columns.
    pub indexes: &'static [(&'static str, &'static str)],
}

/// A column as it is declared.
#[derive(Debug)]
pub struct Column {
    /// Name in SQL.
    pub name: &'static str,
    /// What a value is, with its unit.
    pub doc: &'static str,
    /// Type readers see.
    pub data_type: fn() -> DataType,
    /// Type in a batch on its way to the store.
    pub batch_type: fn() -> DataType,
    /// Type in SQLite; `None` for a column of the Parquet store alone.
    pub sqlite: Option<&'static str>,
    /// SQLite constraint, such as a reference.
    pub constraint: Option<&'static str>,
    /// Whether it may be NULL.
    pub nullable: bool,
}

impl Table {
    fn schema_of(&self, data_type: impl Fn(&Column) -> DataType) -> SchemaRef {
        let fields: Vec<Field> = self
            .columns
            .iter()
            .map(|column| {
                let doc = [("doc".to_owned(), column.doc.trim().to_owned())];
                Field::new(column.name, data_type(column), column.nullable)
                    .with_metadata(doc.into_iter().collect())
            })
            .collect();
        let doc = [("doc".to_owned(), self.doc.trim().to_owned())];
        Arc::new(Schema::new_with_metadata(fields, doc.into_iter().collect()))
    }

    /// Schema that readers of the store see; column docs are field metadata under `doc`.
    #[must_use]
    pub fn arrow(&self) -> SchemaRef {
        self.schema_of(|column| (column.data_type)())
    }

    /// Schema of a batch on its way to the store: interned strings are dictionaries there.
    #[must_use]
    pub fn batch(&self) -> SchemaRef {
        self.schema_of(|column| (column.batch_type)())
    }

    /// Columns the SQLite store has.
    pub fn sqlite_columns(&self) -> impl Iterator<Item = &'static Column> {
        self.columns.iter().filter(|column| column.sqlite.is_some())
    }
}

/// Name of a column whose Rust name may be raw (`r#final`), because SQL's names are not Rust's.
#[must_use]
pub const fn column_name(rust: &'static str) -> &'static str {
    match rust.as_bytes() {
        [b'r', b'#', ..] => rust.split_at(2).1,
        _ => rust,
    }
}

/// Declares tables. `name: Type [constraint]` is a column; its Rust type says type and nullability.
macro_rules! tables {
    ($($(#[doc = $tdoc:literal])+ $row:ident / $builder:ident = $tname:ident {
        $($(#[doc = $cdoc:literal])+ $col:ident : $ty:ty $([$constraint:literal])?,)+
    } indexes [$($iname:literal ($icols:literal)),* $(,)?])+) => {
        /// Every table, in the order the stores create them.
        pub const TABLES: &[&$crate::schema::Table] = &[$(&$row::TABLE),+];

        $(
            $(#[doc = $tdoc])+
            #[derive(Debug, Clone)]
            pub struct $row { $($(#[doc = $cdoc])+ pub $col: $ty),+ }

            impl $row {
                /// The declaration of this table.
                pub const TABLE: $crate::schema::Table = $crate::schema::Table {
                    name: stringify!($tname),
                    doc: concat!($($tdoc, "\n"),+),
                    columns: &[$($crate::schema::Column {
                        name: $crate::schema::column_name(stringify!($col)),
                        doc: concat!($($cdoc, "\n"),+),
                        data_type: <$ty as $crate::schema::ColumnValue>::data_type,
                        batch_type: <$ty as $crate::schema::ColumnValue>::batch_type,
                        sqlite: <$ty as $crate::schema::ColumnValue>::SQLITE,
                        constraint: tables!(@constraint $($constraint)?),
                        nullable: <$ty as $crate::schema::ColumnValue>::NULLABLE,
                    }),+],
                    indexes: &[$(($iname, $icols)),*],
                };
            }

            #[doc = concat!("Collects rows of `", stringify!($tname), "` by column.")]
            #[derive(Default)]
            #[expect(missing_debug_implementations, reason = "holds nothing but Arrow builders")]
            pub struct $builder {
                rows: usize,
                waiting: Vec<$row>,
                $(pub(crate) $col: <$ty as $crate::schema::ColumnValue>::Builder),+
            }

            impl $crate::schema::ByColumn for $builder {
                fn by_column(&mut self, count: usize) -> &mut Self {
                    if !self.waiting.is_empty() {
                        self.settle();
                    }
                    self.rows += count;
                    self
                }
            }

            impl $builder {
                /// Appends a row.
                #[inline]
                pub fn push(&mut self, row: $row) {
                    self.rows += 1;
                    self.waiting.push(row);
                    if self.waiting.len() >= $crate::schema::WAITING_ROWS {
                        self.settle();
                    }
                }

                /// Puts rows that wait into their columns.
                #[inline(never)]
                fn settle(&mut self) {
                    let rows = self.waiting.as_slice();
                    $(<$ty as $crate::schema::ColumnValue>::extend(&mut self.$col, rows, |row| &row.$col);)+
                    self.waiting.clear();
                }

                /// Rows collected since the last [`finish`](Self::finish).
                #[must_use]
                pub fn len(&self) -> usize {
                    self.rows
                }

                /// Whether nothing was collected since the last [`finish`](Self::finish).
                #[must_use]
                pub fn is_empty(&self) -> bool {
                    self.rows == 0
                }

                /// Moves the rows out as a batch with the schema [`Table::batch`]($crate::schema::Table::batch).
                ///
                /// # Errors
                /// Arrow's, if the columns do not fit the declaration.
                pub fn finish(
                    &mut self,
                    names: &dyn $crate::schema::Names,
                ) -> Result<arrow::record_batch::RecordBatch, arrow::error::ArrowError> {
                    self.settle();
                    self.rows = 0;
                    arrow::record_batch::RecordBatch::try_new(
                        $row::TABLE.batch(),
                        vec![$(<$ty as $crate::schema::ColumnValue>::finish(&mut self.$col, names)),+],
                    )
                }
            }
        )+
    };
    (@constraint) => { None };
    (@constraint $constraint:literal) => { Some($constraint) };
}
