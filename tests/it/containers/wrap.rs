//! A snapshot put into each container, by other means than the reader under test.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// A page of the shape that PyTorch's viewer writes: zeros behind the pickle, and the base64 in a list of files.
pub(super) fn html(pickle: &[u8]) -> Vec<u8> {
    let mut padded = pickle.to_vec();
    padded.resize((pickle.len() / 3 + 1) * 3, 0);
    let page = format!(
        "<!DOCTYPE html>\n<html>\n<head>\n</head>\n<body>\n<script type=\"module\">\nimport {{add_files}} from \
         \"https://example.org/a/long/path/that/is/no/base64/of/a/snapshot/viewer.js\"\nconst files = \
         [{{\"name\": \"snapshot.pickle\", \"base64\": \"{}\"}}]\nadd_files(files, 'Active Memory Timeline')\n</script>\n\
         </body>\n</html>\n",
        base64(&padded)
    );
    page.into_bytes()
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    assert_eq!(bytes.len() % 3, 0);
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for shift in [18, 12, 6, 0] {
            text.push(char::from(ALPHABET[usize::try_from(bits >> shift & 63).unwrap()]));
        }
    }
    text
}

/// The snapshot as Python's `json` writes it; `None` where there is no Python.
pub(super) fn json(pickle: &Path) -> Option<Vec<u8>> {
    let script = "import json, pickle, sys; json.dump(pickle.load(open(sys.argv[1], 'rb')), sys.stdout)";
    match Command::new("python3").args(["-c", script]).arg(pickle).output() {
        Ok(output) if output.status.success() => Some(output.stdout),
        _ => {
            eprintln!("skipped: JSON of {}, for there is no python3", pickle.display());
            None
        }
    }
}
