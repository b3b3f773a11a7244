//! What was asked and answered before. Analyses and charts want some small relations again and again, and planning one takes
//! longer than reading it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use arrow::record_batch::RecordBatch;

use super::Rows;
use crate::error::Result;

/// Bytes of an answer that is remembered at most, and of all of them.
const SMALL: usize = 1 << 20;
const ALL: usize = 64 << 20;

/// Rows by the question that they are the answer to. The snapshots that are asked do not change.
#[derive(Debug, Default)]
pub(super) struct Answers(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    rows: HashMap<String, Rows>,
    bytes: usize,
}

impl Answers {
    /// The answer to `question`: that of the last time, or what `ask` comes to.
    pub(super) fn once(&self, question: String, ask: impl FnOnce() -> Result<Rows>) -> Result<Rows> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rows) = known().rows.get(&question) {
            return Ok(rows.clone());
        }
        let rows = ask()?;
        let bytes = rows.batches.iter().map(RecordBatch::get_array_memory_size).sum::<usize>();
        let mut known = known();
        if bytes <= SMALL && known.bytes.saturating_add(bytes) <= ALL {
            known.bytes += bytes;
            known.rows.insert(question, rows.clone());
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use arrow::array::Int64Array;

    use super::*;
    use crate::error::Error;

    fn rows(count: usize) -> Rows {
        let column = Arc::new(Int64Array::from(vec![7; count])) as _;
        let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
        Rows { schema: batch.schema(), batches: vec![batch] }
    }

    #[test]
    fn a_small_answer_is_worked_out_once() {
        let (answers, asked) = (Answers::default(), Cell::new(0));
        let ask = |question: &str, count| {
            let answer = answers.once(question.to_owned(), || {
                asked.set(asked.get() + 1);
                Ok(rows(count))
            });
            (answer.unwrap().len(), asked.get())
        };
        assert_eq!([ask("a", 3), ask("b", 2), ask("a", 3)], [(3, 1), (2, 2), (3, 2)]);
        // What is large is nobody's to keep.
        assert_eq!([ask("large", SMALL), ask("large", SMALL)], [(SMALL, 3), (SMALL, 4)]);
    }

    #[test]
    fn an_error_is_no_answer() {
        let answers = Answers::default();
        let failed = || Err(Error::Sql { reason: "no".to_owned(), place: None, hint: None });
        answers.once("a".to_owned(), failed).unwrap_err();
        assert_eq!(answers.once("a".to_owned(), || Ok(rows(1))).unwrap().len(), 1);
    }
}
