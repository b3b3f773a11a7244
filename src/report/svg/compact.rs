//! The same picture in fewer bytes: plotters writes every attribute and every corner in full.
//!
//! Defaults are left out, what all words share moves to the root, and long lines become paths of relative steps. An area
//! that is followed by its outline becomes one path with both.

use std::fmt::Write as _;

/// What need not be said, or is said once at the root.
const SILENT: [&str; 6] = [
    " opacity=\"1\"",
    " stroke=\"none\"",
    " stroke-width=\"1\"",
    " text-anchor=\"start\"",
    " font-family=\"sans-serif\"",
    " font-size=\"12.096774193548388\"",
];
const ROOT: &str = "<svg font-family=\"sans-serif\" font-size=\"12.1\"";
/// Corners from which on a path is shorter.
const LONG: usize = 6;

/// The picture as plotters wrote it, one element or text to a line, in fewer bytes.
pub(super) fn compact(svg: &str) -> String {
    let mut made = String::with_capacity(svg.len() / 2);
    let mut area: Option<Shape<'_>> = None;
    for line in svg.lines() {
        let shape = Shape::parse(line);
        if let Some(area) = area.take() {
            if let Some(outline) = shape.as_ref().filter(|shape| shape.outlines(&area)) {
                area.write(&mut made, Some(outline));
                continue;
            }
            area.write(&mut made, None);
        }
        match shape {
            Some(shape) if shape.is_area => area = Some(shape),
            Some(shape) => shape.write(&mut made, None),
            None if line.starts_with('<') => plain(&mut made, line),
            None => made.push_str(line),
        }
    }
    if let Some(area) = area {
        area.write(&mut made, None);
    }
    made.push('\n');
    made
}

/// An element that is no line: without what goes without saying. Words are on lines of their own and stay as they are.
fn plain(made: &mut String, line: &str) {
    let mut short = line.to_owned();
    for words in SILENT {
        short = short.replace(words, "");
    }
    match short.strip_prefix("<svg") {
        Some(rest) => made.extend([ROOT, rest]),
        None => made.push_str(&short),
    }
    if line.ends_with("/>") || line.starts_with("</") || line.starts_with("<svg") {
        made.push('\n');
    }
}

/// A line or an area of many corners.
struct Shape<'a> {
    is_area: bool,
    /// Attributes between the name of the element and its points.
    style: &'a str,
    points: &'a str,
}

impl<'a> Shape<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (is_area, rest) = match (line.strip_prefix("<polygon"), line.strip_prefix("<polyline")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return None,
        };
        let (style, points) = rest.split_once(" points=\"")?;
        Some(Self { is_area, style, points: points.strip_suffix("\"/>")?.trim_end() })
    }

    /// Whether it is a line along the beginning of an area, which closes along the bottom.
    fn outlines(&self, area: &Self) -> bool {
        !self.is_area && !self.points.is_empty() && area.points.starts_with(self.points)
    }

    fn write(&self, made: &mut String, outline: Option<&Self>) {
        let corners: Vec<(i32, i32)> = self
            .points
            .split(' ')
            .filter_map(|point| {
                let (x, y) = point.split_once(',')?;
                Some((x.parse().ok()?, y.parse().ok()?))
            })
            .collect();
        let style = match outline {
            Some(outline) => format!(
                "{}{}",
                self.style.replace(" stroke=\"none\"", ""),
                outline.style.replace(" fill=\"none\"", "")
            ),
            None => self.style.to_owned(),
        };
        let name = if corners.len() >= LONG || outline.is_some() {
            "path"
        } else if self.is_area {
            "polygon"
        } else {
            "polyline"
        };
        let mut short = style;
        for words in SILENT {
            short = short.replace(words, "");
        }
        made.extend(["<", name, &short]);
        if name == "path" {
            made.push_str(" d=\"");
            steps(made, &corners);
            made.push_str("\"/>\n");
        } else {
            made.extend([" points=\"", self.points, "\"/>\n"]);
        }
    }
}

/// A path through corners: most steps go straight along or straight up.
fn steps(made: &mut String, corners: &[(i32, i32)]) {
    let mut before = None;
    for (x, y) in corners.iter().copied() {
        let _infallible = match before.replace((x, y)) {
            None => write!(made, "M{x},{y}"),
            Some((from, height)) => match (x - from, y - height) {
                (0, 0) => Ok(()),
                (along, 0) => write!(made, "h{along}"),
                (0, up) => write!(made, "v{up}"),
                (along, up) => write!(made, "l{along},{up}"),
            },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_says_nothing_twice() {
        let svg = "<svg width=\"9\" height=\"9\" xmlns=\"x\">\n\
            <rect x=\"1\" y=\"2\" opacity=\"1\" fill=\"#F00\" stroke=\"none\"/>\n\
            <text x=\"1\" font-family=\"sans-serif\" opacity=\"1\">\n opacity=\"1\" stays\n</text>\n\
            </svg>\n";
        let short = compact(svg);
        assert!(
            short.starts_with("<svg font-family=\"sans-serif\" font-size=\"12.1\" width=\"9\""),
            "{short}"
        );
        assert!(short.contains("<rect x=\"1\" y=\"2\" fill=\"#F00\"/>\n"), "{short}");
        assert!(short.contains("<text x=\"1\"> opacity=\"1\" stays</text>\n"), "{short}");
    }

    #[test]
    fn an_area_and_its_outline_become_one_path() {
        let svg = "<polygon opacity=\"1\" fill=\"#EEE\" points=\"0,5 2,5 2,3 9,3 9,9 0,9 \"/>\n\
            <polyline fill=\"none\" opacity=\"1\" stroke=\"#111\" stroke-width=\"1\" points=\"0,5 2,5 2,3 9,3 \"/>\n\
            <polyline fill=\"none\" opacity=\"1\" stroke=\"#222\" stroke-width=\"2\" points=\"0,0 9,0 \"/>\n";
        assert_eq!(
            compact(svg),
            "<path fill=\"#EEE\" stroke=\"#111\" d=\"M0,5h2v-2h7v6h-9\"/>\n\
             <polyline fill=\"none\" stroke=\"#222\" stroke-width=\"2\" points=\"0,0 9,0\"/>\n\n"
        );
    }
}
