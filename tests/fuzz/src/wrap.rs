//! Containers around a snapshot, as the tools that users have write them.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

/// The bytes in the container of this number: none, gzip, zstd, an HTML page, or a page in gzip.
pub fn wrapped(bytes: &[u8], container: u8) -> Vec<u8> {
    match container % 5 {
        0 => bytes.to_vec(),
        1 => gzip(bytes),
        2 => zstd::encode_all(bytes, 1).unwrap(),
        3 => page(bytes),
        _ => gzip(&page(bytes)),
    }
}

/// Whether the container of this number is a page, or a page in another one.
pub fn has_page(container: u8) -> bool {
    matches!(container % 5, 3 | 4)
}

/// Whether a page with these bytes in it is one that a reader has to find them in.
pub fn fits_page(bytes: &[u8]) -> bool {
    bytes.len() > 24 && matches!(bytes, [0x80, 0..=5, ..] | [b'{' | b'[', ..])
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// As `_memory_viz.py` writes it: base64 in a string literal of a script.
fn page(bytes: &[u8]) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut page = b"<!DOCTYPE html>\n<script>\nconst snapshots = [{\"name\": \"a.pickle\", \"base64\": \"".to_vec();
    for chunk in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..chunk.len()].copy_from_slice(chunk);
        let value = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for (place, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let six = (value >> shift) & 63;
            page.push(if place <= chunk.len() { ALPHABET[six as usize] } else { b'=' });
        }
    }
    page.extend(b"\"}];\n</script>\n");
    page
}
