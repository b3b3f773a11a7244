//! How far an import is, on standard error, for people who wait at a terminal.

use std::fs;
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::quantity;
use crate::snapshot::Progress;

/// A bar with bytes, rate and events; gone when dropped, and not there at all where nobody sees it.
#[derive(Debug)]
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// A bar for reading `source`.
    pub(super) fn new(source: &Path, quiet: bool) -> Self {
        if quiet {
            return Self(ProgressBar::hidden());
        }
        let total = fs::metadata(source).map(|metadata| metadata.len()).ok();
        // Draws on a terminal only, ten times a second.
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(10));
        let template =
            "{prefix} [{bar:30}] {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(source.file_name().unwrap_or_default().to_string_lossy().into_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }
}

impl Progress for Bar {
    fn advance(&self, bytes: u64, events: u64) {
        self.0.set_position(bytes);
        let events = quantity::count(i64::try_from(events).unwrap_or(i64::MAX));
        if self.0.length().is_some_and(|total| bytes >= total) {
            self.0.set_message(format!("{events} events; writing"));
        } else {
            self.0.set_message(format!("{events} events"));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
