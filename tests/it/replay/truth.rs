//! The simulator's truth.

use crate::oracle::{python, shared};

const NPUSNAP: &str = env!("CARGO_BIN_EXE_npusnap");

/// `tests/oracle/replay_truth.py BINARY TOOLS` does 200 of them.
#[test]
fn allocations_are_what_the_simulated_allocator_did() {
    let Some(tools) = shared("replay_truth.py") else { return };
    let tools = tools.join("tools");
    python("replay_truth.py", &[NPUSNAP, tools.to_str().unwrap(), "--runs", "25"]);
}
