//! Finds Apache ECharts for the report and hashes what the report runs, so that its page allows that and nothing else.
//!
//! ECharts is a file in the source of the crate `charming`, which the registry serves like any other dependency; it is
//! accepted only with the digest below. `NPUSNAP_ECHARTS_JS=FILE` takes another build of ECharts, of which a packager has
//! made sure.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

/// The crate's folder in a registry, the file in it, and the file's SHA-256.
const FOLDER: &str = "charming-0.6.0";
const CRATE: (&str, &str) = ("charming", "0.6.0");
const FILE: &str = "src/asset/echarts-5.5.1.min.js";
const DIGEST: &str = "e84270bd0cd5bdf60fefc26d00c2a391cb2e81f4d26a7a9ee16185a54773a3cf";
const OVERRIDE: &str = "NPUSNAP_ECHARTS_JS";

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    tell(&format!("rerun-if-env-changed={OVERRIDE}"))?;
    tell("rerun-if-changed=build.rs")?;
    let script = echarts()?;
    fs::write(out.join("echarts.min.js.sha256"), base64(&Sha256::digest(script.as_bytes())))?;
    fs::write(out.join("echarts.min.js"), script)?;
    for name in ["page.js", "calls.js", "charts.js", "report.js", "report.css"] {
        let path = Path::new("reports").join(name);
        tell(&format!("rerun-if-changed={}", path.display()))?;
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        fs::write(out.join(format!("{name}.sha256")), base64(&Sha256::digest(embeddable(text)?.as_bytes())))?;
    }
    Ok(())
}

/// The text of ECharts, checked.
fn echarts() -> Result<String, Box<dyn Error>> {
    if let Ok(path) = std::env::var(OVERRIDE) {
        tell(&format!("rerun-if-changed={path}"))?;
        return embeddable(fs::read_to_string(&path).map_err(|error| format!("{OVERRIDE}={path}: {error}"))?);
    }
    let path = match in_registry() {
        Some(path) => path,
        None => in_metadata()?,
    };
    tell(&format!("rerun-if-changed={}", path.display()))?;
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut digest = String::new();
    for byte in Sha256::digest(text.as_bytes()) {
        write!(digest, "{byte:02x}")?;
    }
    if digest != DIGEST {
        let path = path.display();
        return Err(format!("{path}: SHA-256 is {digest}, expected {DIGEST}: not the ECharts we know").into());
    }
    embeddable(text)
}

/// Where cargo unpacks crates, without asking cargo.
fn in_registry() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| {
        let user = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"))?;
        Some(PathBuf::from(user).join(".cargo"))
    })?;
    let registries = fs::read_dir(home.join("registry/src")).ok()?;
    registries
        .filter_map(|registry| Some(registry.ok()?.path().join(FOLDER).join(FILE)))
        .find(|path| path.is_file())
}

/// Where cargo says that the crate is; vendored sources are anywhere.
fn in_metadata() -> Result<PathBuf, Box<dyn Error>> {
    let target = variable("TARGET")?;
    let output = Command::new(variable("CARGO")?)
        .args(["metadata", "--format-version=1", "--locked", "--filter-platform", &target])
        .output()?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata.get("packages").and_then(serde_json::Value::as_array);
    packages
        .and_then(|packages| {
            let text = |package: &serde_json::Value, key: &str| Some(package.get(key)?.as_str()?.to_owned());
            let is_it = |package: &&serde_json::Value| {
                text(package, "name").as_deref() == Some(CRATE.0)
                    && text(package, "version").as_deref() == Some(CRATE.1)
            };
            let manifest = text(packages.iter().find(is_it)?, "manifest_path")?;
            Some(Path::new(&manifest).parent()?.join(FILE))
        })
        .ok_or_else(|| format!("cargo metadata names no {FOLDER}").into())
}

/// What a browser hashes inside an element is what we hash only if the parser changes nothing in it.
fn embeddable(text: String) -> Result<String, Box<dyn Error>> {
    let lower = text.to_ascii_lowercase();
    for bad in ["</script", "</style", "<!--", "\r", "\0"] {
        if lower.contains(bad) {
            return Err(format!("a script or style to embed holds {bad:?}").into());
        }
    }
    Ok(text)
}

/// As Content-Security-Policy writes hashes.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_usize, |word, byte| (word << 8) | usize::from(*byte));
        let word = word << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = ALPHABET.get((word >> (18 - 6 * place)) & 63).copied().unwrap_or(b'=');
            text.push(if place > chunk.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

fn variable(name: &str) -> Result<String, Box<dyn Error>> {
    std::env::var(name).map_err(|error| format!("{name}: {error}").into())
}

fn tell(line: &str) -> io::Result<()> {
    writeln!(io::stdout(), "cargo::{line}")
}
