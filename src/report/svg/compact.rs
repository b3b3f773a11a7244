//! The same picture in fewer bytes: plotters writes every attribute and every corner in full.
//!
//! Defaults are left out, what all words share moves to the root, and long lines become paths of relative steps. An area
//! that is followed by its outline becomes one path with both.

use std::fmt::Write as _;

/// What need not be said, or is said once at the root.
const SILENT: [&str; 7] = [
    " fill=\"#1B2230\"",
    " opacity=\"1\"",
    " stroke=\"none\"",
    " stroke-width=\"1\"",
    " text-anchor=\"start\"",
    " font-family=\"sans-serif\"",
    " font-size=\"12.096774193548388\"",
];
const ROOT: &str = "<svg font-family=\"sans-serif\" font-size=\"12.1\" fill=\"#1B2230\"";
/// How plotters asks for words in the middle of a height, and how far below it their line then is.
const MIDDLE: &str = "\" dy=\"0.5ex";
const BELOW: i32 = 3;
/// Corners from which on a path is shorter.
const LONG: usize = 6;

/// The picture as plotters wrote it, one element or text to a line, in fewer bytes.
pub(super) fn compact(svg: &str) -> String {
    let mut made = String::with_capacity(svg.len() / 2);
    let mut waiting: Vec<Shape<'_>> = Vec::new();
    let mut rectangles: Vec<Rectangle<'_>> = Vec::new();
    for line in svg.lines() {
        let shape = Shape::parse(line);
        if let (Some(shape), Some(before)) = (&shape, waiting.last()) {
            if shape.outlines(before) {
                write(&mut made, &waiting, Some(shape));
                waiting.clear();
                continue;
            }
            if shape.continues(before) {
                waiting.extend(Shape::parse(line));
                continue;
            }
        }
        write(&mut made, &waiting, None);
        waiting.clear();
        let rectangle = Rectangle::parse(line);
        if rectangle.as_ref().zip(rectangles.last()).is_some_and(|(one, last)| one.style == last.style) {
            rectangles.extend(rectangle);
            continue;
        }
        tiles(&mut made, &mut rectangles);
        match shape {
            _ if rectangle.is_some() => rectangles.extend(rectangle),
            Some(shape) => waiting.push(shape),
            None if line.starts_with('<') => plain(&mut made, line),
            None => made.push_str(line),
        }
    }
    write(&mut made, &waiting, None);
    tiles(&mut made, &mut rectangles);
    made.push('\n');
    made
}

/// An element that is no line: without what goes without saying. Words are on lines of their own and stay as they are.
fn plain(made: &mut String, line: &str) {
    let mut short = lowered(line).unwrap_or_else(|| line.to_owned());
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

/// Words whose place says by itself where their line is.
fn lowered(line: &str) -> Option<String> {
    let (before, after) = line.split_once(MIDDLE)?;
    let (start, y) = before.rsplit_once('"')?;
    let y: i32 = y.parse().ok()?;
    Some(format!("{start}\"{}{after}", y + BELOW))
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
        !self.is_area && area.is_area && !self.points.is_empty() && area.points.starts_with(self.points)
    }

    /// Whether it is another piece of lines that look the same, such as a dash.
    fn continues(&self, before: &Self) -> bool {
        !self.is_area && !before.is_area && self.style == before.style
    }

    fn corners(&self) -> Vec<(i32, i32)> {
        let corner = |point: &str| {
            let (x, y) = point.split_once(',')?;
            Some((x.parse().ok()?, y.parse().ok()?))
        };
        self.points.split(' ').filter_map(corner).collect()
    }
}

/// Writes an area, with its outline if it has one, or pieces of lines that look the same, as one element.
fn write(made: &mut String, shapes: &[Shape<'_>], outline: Option<&Shape<'_>>) {
    let Some(first) = shapes.first() else { return };
    let mut style = match outline {
        Some(outline) => format!(
            "{}{}",
            first.style.replace(" stroke=\"none\"", ""),
            outline.style.replace(" fill=\"none\"", "")
        ),
        None => first.style.to_owned(),
    };
    for words in SILENT {
        style = style.replace(words, "");
    }
    let corners: Vec<Vec<(i32, i32)>> = shapes.iter().map(Shape::corners).collect();
    if corners.iter().map(Vec::len).sum::<usize>() < LONG && outline.is_none() && shapes.len() == 1 {
        let name = if first.is_area { "polygon" } else { "polyline" };
        made.extend(["<", name, &style, " points=\"", first.points, "\"/>\n"]);
        return;
    }
    made.extend(["<path", &style, " d=\""]);
    for corners in &corners {
        steps(made, corners);
    }
    made.push_str("\"/>\n");
}

/// A rectangle as plotters writes it.
struct Rectangle<'a> {
    line: &'a str,
    /// x, y, width, height.
    place: [&'a str; 4],
    style: &'a str,
}

impl<'a> Rectangle<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut rest = line.strip_prefix("<rect")?;
        let mut place = [""; 4];
        for (name, value) in [" x=\"", " y=\"", " width=\"", " height=\""].into_iter().zip(&mut place) {
            (*value, rest) = rest.strip_prefix(name)?.split_once('"')?;
        }
        Some(Self { line, place, style: rest.strip_suffix("/>")? })
    }
}

/// Writes rectangles of one colour, many as one path.
fn tiles(made: &mut String, rectangles: &mut Vec<Rectangle<'_>>) {
    match rectangles.as_slice() {
        [] => {}
        [one] => plain(made, one.line),
        [first, ..] => {
            let mut style = first.style.to_owned();
            for words in SILENT {
                style = style.replace(words, "");
            }
            made.extend(["<path", &style, " d=\""]);
            for Rectangle { place: [x, y, width, height], .. } in rectangles.iter() {
                let _infallible = write!(made, "M{x},{y}h{width}v{height}h-{width}z");
            }
            made.push_str("\"/>\n");
        }
    }
    rectangles.clear();
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
            <text x=\"1\" y=\"20\" dy=\"0.5ex\" font-family=\"sans-serif\" opacity=\"1\" fill=\"#1B2230\">\n opacity=\"1\" stays\n</text>\n\
            </svg>\n";
        let short = compact(svg);
        assert!(
            short.starts_with(
                "<svg font-family=\"sans-serif\" font-size=\"12.1\" fill=\"#1B2230\" width=\"9\""
            ),
            "{short}"
        );
        assert!(short.contains("<rect x=\"1\" y=\"2\" fill=\"#F00\"/>\n"), "{short}");
        assert!(short.contains("<text x=\"1\" y=\"23\"> opacity=\"1\" stays</text>\n"), "{short}");
    }

    #[test]
    fn rectangles_of_one_colour_become_one_path() {
        let rectangle = |x: i32, fill: &str| {
            format!(
                "<rect x=\"{x}\" y=\"2\" width=\"3\" height=\"9\" opacity=\"1\" fill=\"{fill}\" stroke=\"none\"/>\n"
            )
        };
        let svg = [rectangle(1, "#F00"), rectangle(5, "#F00"), rectangle(9, "#00F")].concat();
        assert_eq!(
            compact(&svg),
            "<path fill=\"#F00\" d=\"M1,2h3v9h-3zM5,2h3v9h-3z\"/>\n\
             <rect x=\"9\" y=\"2\" width=\"3\" height=\"9\" fill=\"#00F\"/>\n\n"
        );
    }

    #[test]
    fn dashes_become_one_path() {
        let dash = |from: i32| {
            let to = from + 4;
            format!(
                "<polyline fill=\"none\" stroke=\"#111\" stroke-width=\"1\" points=\"5,{from} 5,{to} \"/>\n"
            )
        };
        let svg = format!("{}{}", dash(0), dash(8));
        assert_eq!(compact(&svg), "<path fill=\"none\" stroke=\"#111\" d=\"M5,0v4M5,8v4\"/>\n\n");
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
