//! The fast way through entries against the opcode loop: the same rows, or the same error. The first byte chooses what
//! else is asked for.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use npusnap::snapshot::{Filter, Options};
use npusnap_fuzz::{opcodes, read, told};

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else { return };
    let filter = Filter {
        events: if choice & 2 == 0 { "..".parse().unwrap() } else { "1..5".parse().unwrap() },
        min_size: (choice & 4 != 0).then_some(513),
        devices: if choice & 8 == 0 { vec![] } else { vec![0] },
    };
    let options = Options { salvage: choice & 1 != 0, filter, plain_loop: false };
    let fast = read(bytes, &options);
    let plain = read(bytes, &Options { plain_loop: true, ..options });
    match (fast, plain) {
        (Ok(fast), Ok(plain)) => {
            assert_eq!(fast.tables.keys().collect::<Vec<_>>(), plain.tables.keys().collect::<Vec<_>>());
            for (table, batches) in &fast.tables {
                assert!(batches == &plain.tables[table], "the ways differ in {table}");
            }
        }
        (Err(fast), Err(plain)) => assert_eq!(told(&fast), told(&plain)),
        (fast, plain) => {
            let said = |result: npusnap::error::Result<_>| result.err().map(|error| told(&error));
            panic!("one way fails: {:?}, {:?}", said(fast), said(plain));
        }
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    opcodes::mutate(data, size, max_size, seed, 1)
});
