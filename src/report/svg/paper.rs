//! A sheet to draw on, in pixels: rectangles, lines, circles and words, through plotters' SVG backend.
//!
//! Drawing into a string cannot fail, so nothing here returns an error.

use plotters::coord::Shift;
use plotters::prelude::{
    BLACK, Circle, DrawingArea, IntoDrawingArea as _, PathElement, Polygon, RGBColor, Rectangle, SVGBackend,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, IntoFont as _, ShapeStyle, TextStyle};

use super::compact::compact;
use crate::analysis::{Lang, Text};
use crate::output::Redaction;
use crate::report::html::visible;

/// Between the wordings of a text that the page will show in one of two languages.
const BETWEEN: char = '\u{e000}';
/// Width of every sheet.
pub(super) const WIDTH: i32 = 920;
/// Width of a character at the size of labels, of a Latin and of a wide one.
const NARROW: i32 = 7;
const WIDE: i32 = 12;

/// Which words a picture has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::report) enum Wording {
    /// Both; the page shows one.
    Both,
    /// One, for a file of its own.
    One(Lang),
}

/// Where a text stands from its point.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A sheet while it is drawn on.
pub(super) struct Paper<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
    wording: Wording,
    redaction: &'a Redaction,
}

/// Draws a sheet of that height.
pub(super) fn sheet(
    height: i32,
    wording: Wording,
    redaction: &Redaction,
    draw: impl FnOnce(&Paper<'_>),
) -> String {
    let mut svg = String::new();
    let size = (u32::try_from(WIDTH).unwrap_or(1), u32::try_from(height).unwrap_or(1));
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let paper = Paper { area, wording, redaction };
        if let Wording::One(_) = wording {
            paper.rectangle((0, 0), (WIDTH, height), "card");
        }
        draw(&paper);
        drop(paper.area.present());
    }
    both_wordings(&compact(&svg))
}

impl Paper<'_> {
    pub(super) fn rectangle(&self, from: (i32, i32), to: (i32, i32), tone: &str) {
        drop(self.area.draw(&Rectangle::new([from, to], color(tone).filled())));
    }

    pub(super) fn line(&self, points: Vec<(i32, i32)>, tone: &str, width: u32) {
        drop(self.area.draw(&PathElement::new(points, color(tone).stroke_width(width))));
    }

    pub(super) fn area(&self, points: Vec<(i32, i32)>, tone: &str, opacity: f64) {
        drop(self.area.draw(&Polygon::new(points, color(tone).mix(opacity))));
    }

    pub(super) fn circle(&self, at: (i32, i32), radius: i32, tone: &str, is_filled: bool) {
        let style: ShapeStyle =
            if is_filled { color(tone).mix(0.7).filled() } else { color(tone).stroke_width(1) };
        drop(self.area.draw(&Circle::new(at, radius, style)));
    }

    /// A line of dashes, straight up or across.
    pub(super) fn dashes(&self, from: (i32, i32), to: (i32, i32), tone: &str) {
        const DASH: i32 = 4;
        let length = (to.0 - from.0).abs().max((to.1 - from.1).abs());
        let step = ((to.0 - from.0).signum(), (to.1 - from.1).signum());
        let at = |along: i32| (from.0 + step.0 * along, from.1 + step.1 * along);
        let mut along = 0;
        while along < length {
            self.line(vec![at(along), at((along + DASH).min(length))], tone, 1);
            along += 2 * DASH;
        }
    }

    pub(super) fn text(&self, text: &str, at: (i32, i32), anchor: Anchor, tone: &str) {
        let text: String = text.chars().filter(|symbol| *symbol != BETWEEN).collect();
        self.write(&visible(&self.redaction.apply(&text)), at, anchor, tone);
    }

    pub(super) fn words(&self, words: &Text, at: (i32, i32), anchor: Anchor, tone: &str) {
        let (en, zh) = (words.get(Lang::En), words.get(Lang::Zh));
        match self.wording {
            Wording::One(lang) => self.text(words.get(lang), at, anchor, tone),
            Wording::Both if en == zh => self.text(en, at, anchor, tone),
            Wording::Both => {
                let shown = |text| {
                    visible(&self.redaction.apply(text))
                        .chars()
                        .filter(|symbol| *symbol != BETWEEN)
                        .collect::<String>()
                };
                self.write(&format!("{}{BETWEEN}{}", shown(en), shown(zh)), at, anchor, tone);
            }
        }
    }

    fn write(&self, text: &str, at: (i32, i32), anchor: Anchor, tone: &str) {
        let position = Pos::new(
            match anchor {
                Anchor::Start => HPos::Left,
                Anchor::Middle => HPos::Center,
                Anchor::End => HPos::Right,
            },
            VPos::Center,
        );
        // plotters takes the height of a line; the text itself is a fifth smaller.
        let font = ("sans-serif", 15).into_font();
        let ink = color(tone);
        let style = TextStyle::from(font).color(&ink).pos(position);
        drop(self.area.draw_text(text, &style, at));
    }

    /// A legend along the top: a square of colour and words for each.
    pub(super) fn legend(&self, entries: &[(Text, &str)], left: i32) {
        let mut at = left;
        for (words, tone) in entries {
            self.rectangle((at, 8), (at + 12, 16), tone);
            self.words(words, (at + 18, 12), Anchor::Start, "text");
            at += 18 + width(words.get(Lang::En)).max(width(words.get(Lang::Zh))) + 18;
        }
    }
}

/// How wide a text will be, about.
pub(super) fn width(text: &str) -> i32 {
    text.chars().map(|symbol| if u32::from(symbol) < 0x1100 { NARROW } else { WIDE }).sum()
}

/// The text, shortened at its end to fit into a width.
pub(super) fn fitted(text: &str, room: i32) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    for symbol in text.chars() {
        if width(&kept) + 2 * NARROW > room {
            break;
        }
        kept.push(symbol);
    }
    kept.push('…');
    kept
}

/// The text, shortened in its middle to fit into a width: of names both the beginning and the end tell them apart.
pub(super) fn shortened(text: &str, room: i32) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    // Files and lines stand at the end: it gets two thirds.
    let within = |room: i32| {
        move |used: &mut i32, symbol: char| {
            *used += width(symbol.encode_utf8(&mut [0; 4]));
            (*used <= room).then_some(symbol)
        }
    };
    let room = room - NARROW;
    let head: String = text.chars().scan(0, within(room / 3)).collect();
    let tail: String = text.chars().rev().scan(0, within(room - room / 3)).collect();
    let tail: String = tail.chars().rev().collect();
    format!("{head}…{tail}")
}

/// Texts in two languages become two spans, of which style sheets show one.
fn both_wordings(svg: &str) -> String {
    let mut made = String::with_capacity(svg.len());
    for line in svg.split_inclusive('\n') {
        // Words stand between the marks of their element.
        let parts = line.split_once(BETWEEN).and_then(|(before, after)| {
            let (start, en) = before.rsplit_once('>')?;
            let (zh, end) = after.split_once('<')?;
            Some((start, en, zh, end))
        });
        match parts {
            Some((start, en, zh, end)) => made.extend([
                start,
                "><tspan lang=\"en\">",
                en,
                "</tspan><tspan lang=\"zh\">",
                zh,
                "</tspan><",
                end,
            ]),
            None => made.push_str(line),
        }
    }
    made
}

/// Colours on paper, by the names that style sheets have for them.
fn color(tone: &str) -> RGBColor {
    match tone {
        "card" => RGBColor(255, 255, 255),
        "muted" => RGBColor(91, 101, 120),
        "faint" => RGBColor(195, 202, 214),
        "line" => RGBColor(232, 235, 240),
        "reserved" => RGBColor(138, 148, 166),
        "reserved_fill" => RGBColor(233, 236, 241),
        "active" => RGBColor(208, 138, 19),
        "active_fill" => RGBColor(248, 223, 174),
        "allocated" => RGBColor(47, 99, 214),
        "allocated_fill" => RGBColor(185, 205, 245),
        "pending" => RGBColor(217, 148, 19),
        "free" => RGBColor(207, 214, 224),
        "low" => RGBColor(239, 196, 200),
        "large" => RGBColor(79, 70, 200),
        "small" => RGBColor(224, 122, 63),
        "freed" => RGBColor(111, 122, 140),
        "growth" => RGBColor(106, 95, 201),
        "alloc" => RGBColor(207, 51, 65),
        "release" => RGBColor(31, 138, 84),
        "critical" => RGBColor(179, 32, 44),
        "critical_wash" => RGBColor(252, 232, 233),
        "flame_light" => RGBColor(249, 222, 160),
        "flame" => RGBColor(245, 201, 150),
        "flame_deep" => RGBColor(243, 184, 158),
        "text" => RGBColor(27, 34, 48),
        _ => BLACK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_loses_its_middle_and_keeps_both_ends() {
        assert_eq!(shortened("forward (model.py:42)", 21 * NARROW), "forward (model.py:42)");
        // One for the dots, 6 in front, 12 at the end.
        assert_eq!(shortened("forward (long_model.py:42)", 20 * NARROW), "forwar…model.py:42)");
        assert_eq!(shortened("模型前向计算过程", 5 * WIDE + NARROW), "模…算过程");
    }
}
