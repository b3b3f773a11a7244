//! The decoder alone, opcode by opcode: any bytes become rows or an error.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use npusnap::snapshot::Options;
use npusnap_fuzz::{opcodes, read, told};

fuzz_target!(|bytes: &[u8]| {
    let options = Options { plain_loop: true, ..Options::default() };
    if let Err(error) = read(bytes, &options) {
        told(&error);
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    opcodes::mutate(data, size, max_size, seed, 0)
});
