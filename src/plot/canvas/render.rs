//! Rendering of a canvas as SVG and as PNG.

use std::fmt::Write;
use std::path::Path;

use tiny_skia::{FillRule, LineJoin, Paint, PathBuilder, Pixmap, Stroke, StrokeDash, Transform};

use super::lettering::{CAPITALS, outlines};
use super::{Point, Shape};
use crate::io::replace;
use crate::plot::{Canvas, Colour, TextAnchor};
use crate::{Error, Result};

/// Pixels of a PNG per unit of the canvas.
const SCALE: u32 = 2;
/// The widest and tallest canvas, in units.
const MAX_SIDE: f64 = 16_000.0;
/// The largest area of a PNG, in square units. A square unit takes 32 bytes of memory.
const MAX_AREA: f64 = 1.2e7;
/// Places are held within that many units of the origin.
const FAR: f64 = 2.0 * MAX_SIDE;
/// The gap of a dashed line, in lengths of its dashes.
const GAP: f64 = 2.0 / 3.0;

impl TextAnchor {
    /// The share of a text that lies before its anchor point, and what SVG calls it.
    pub(in crate::plot) fn before(self) -> (f64, &'static str) {
        match self {
            Self::Left => (0.0, "start"),
            Self::Middle => (0.5, "middle"),
            Self::Right => (1.0, "end"),
        }
    }
}

impl Canvas {
    /// Writes the picture as SVG or PNG (two pixels per unit), by the path's extension, replacing the file in one step.
    ///
    /// # Errors
    /// [`Error::Draw`] for another extension, a picture that is too large, a size or a shape with a number that isn't
    /// finite, or a failure of the drawing library; [`Error::Io`] if the file can't be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let fail = |problem: String| Error::draw(path, problem);
        self.check().map_err(fail)?;
        let extension = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
        match extension.as_ref().and_then(|e| e.to_str()) {
            Some("svg") => replace::replace_bytes(path, self.svg().as_bytes()),
            Some("png") if self.width * self.height > MAX_AREA => Err(fail(self.too_large(", or write it as SVG"))),
            Some("png") => {
                let png = self.pixels().and_then(|pixels| pixels.encode_png().map_err(|error| error.to_string()));
                replace::replace_bytes(path, &png.map_err(fail)?)
            }
            _ => Err(fail("unknown extension: expected a path that ends in .svg or .png".to_owned())),
        }
    }

    /// The picture as the text of an SVG file.
    ///
    /// # Errors
    /// [`Error::Draw`] for a picture that is too large, or has a number that isn't finite.
    pub fn to_svg(&self) -> Result<String> {
        self.check().map_err(|problem| Error::draw("a picture", problem))?;
        Ok(self.svg())
    }

    /// What is wrong with the picture, if anything is.
    fn check(&self) -> std::result::Result<(), String> {
        if !(self.width.is_finite() && self.height.is_finite()) {
            let size = format!("{} x {} units", self.width, self.height);
            return Err(format!("the picture is {size}, expected a finite width and height"));
        }
        if self.width.max(self.height) > MAX_SIDE {
            return Err(self.too_large(""));
        }
        if let Some(shape) = self.shapes.iter().find(|shape| !shape.is_finite()) {
            return Err(format!("{shape:?} has a number that isn't finite: leave such shapes or points out"));
        }
        Ok(())
    }

    fn too_large(&self, or: &str) -> String {
        let (width, height) = self.size(1);
        format!("{width} x {height} units are too large: draw fewer panels or cells in one file{or}")
    }

    fn size(&self, scale: u32) -> (u32, u32) {
        let side = |units: f64| units.clamp(1.0, MAX_SIDE).ceil() as u32 * scale;
        (side(self.width), side(self.height))
    }

    fn svg(&self) -> String {
        let (width, height) = self.size(1);
        let mut svg = format!(
            "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             xmlns=\"http://www.w3.org/2000/svg\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        let short = |x: f64| (x * 100.0).round() / 100.0;
        let list = |points: &[Point]| {
            points.iter().map(|&(x, y)| format!("{},{}", short(x), short(y))).collect::<Vec<_>>().join(" ")
        };
        let hex = |colour: &Colour| format!("#{:02x}{:02x}{:02x}", colour.0, colour.1, colour.2);
        for shape in &self.shapes {
            // Writing to a string can't fail.
            let _ = match shape {
                Shape::Line { points, colour, width, dash } => {
                    let dash = dash.map(|dash| format!(" stroke-dasharray=\"{dash} {}\"", short(dash * GAP)));
                    writeln!(
                        svg,
                        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" \
                         stroke-linejoin=\"round\"{}/>",
                        list(points),
                        hex(colour),
                        dash.unwrap_or_default()
                    )
                }
                Shape::Area { points, colour } => {
                    writeln!(svg, "<polygon points=\"{}\" fill=\"{}\"/>", list(points), hex(colour))
                }
                Shape::Disc { centre: (x, y), radius, colour } => {
                    let (x, y, radius) = (short(*x), short(*y), short(*radius));
                    writeln!(svg, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{}\"/>", hex(colour))
                }
                Shape::Text { at, text, size, colour, anchor, turned } => {
                    let (x, y, baseline) = (short(at.0), short(at.1), short(at.1 + CAPITALS / 2.0 * size));
                    let turn = if *turned { format!(" transform=\"rotate(270 {x} {y})\"") } else { String::new() };
                    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                    // The generic family name, so that a viewer can use its own font.
                    writeln!(
                        svg,
                        "<text x=\"{x}\" y=\"{baseline}\"{turn} font-size=\"{}\" font-family=\"sans-serif\" \
                         text-anchor=\"{}\" fill=\"{}\">{text}</text>",
                        short(*size),
                        anchor.before().1,
                        hex(colour)
                    )
                }
            };
        }
        svg + "</svg>\n"
    }

    /// The part of a segment that lies within the picture or close to it.
    fn within(&self, a: Point, b: Point, width: f64) -> Option<(Point, Point)> {
        // Differences of larger numbers might not be finite.
        let [a, b] = [a, b].map(|(x, y)| (x.clamp(-1e9, 1e9), y.clamp(-1e9, 1e9)));
        let (mut from, mut to) = (0.0, 1.0);
        for (start, way, side) in [(a.0, b.0 - a.0, self.width), (a.1, b.1 - a.1, self.height)] {
            let ends = [-width - 9.0, side + width + 9.0].map(|end| (end - start) / way);
            (from, to) = (f64::max(from, ends[0].min(ends[1])), f64::min(to, ends[0].max(ends[1])));
        }
        let at = |t: f64| (a.0 + t * (b.0 - a.0), a.1 + t * (b.1 - a.1));
        (from <= to).then(|| (if from == 0.0 { a } else { at(from) }, if to == 1.0 { b } else { at(to) }))
    }

    /// The picture at [`SCALE`].
    fn pixels(&self) -> std::result::Result<Pixmap, String> {
        let (width, height) = self.size(SCALE);
        let mut pixels = Pixmap::new(width, height).ok_or("there is no memory for its pixels")?;
        pixels.fill(tiny_skia::Color::WHITE);
        let scale = Transform::from_scale(SCALE as f32, SCALE as f32);
        // Far from the picture tiny-skia's integers overflow.
        let near = |x: f64| x.clamp(-FAR, FAR) as f32;
        let paint = |colour: &Colour| {
            let mut paint = Paint { anti_alias: true, ..Paint::default() };
            paint.set_color_rgba8(colour.0, colour.1, colour.2, 255);
            paint
        };
        for shape in &self.shapes {
            let (filled, colour, place) = match shape {
                Shape::Line { points, colour, width, dash } => {
                    let dash = dash.and_then(|dash| StrokeDash::new(vec![dash as f32, (dash * GAP) as f32], 0.0));
                    let stroke = Stroke { width: *width as f32, line_join: LineJoin::Round, dash, ..Stroke::default() };
                    let mut path = PathBuilder::new();
                    for pair in points.windows(2) {
                        let Some((from, to)) = self.within(pair[0], pair[1], *width) else { continue };
                        let from = (near(from.0), near(from.1));
                        if path.last_point().is_none_or(|last| (last.x, last.y) != from) {
                            path.move_to(from.0, from.1);
                        }
                        path.line_to(near(to.0), near(to.1));
                    }
                    if let Some(path) = path.finish() {
                        pixels.stroke_path(&path, &paint(colour), &stroke, scale, None);
                    }
                    continue;
                }
                Shape::Area { points, colour } => {
                    let mut path = PathBuilder::new();
                    for (i, &(x, y)) in points.iter().enumerate() {
                        if i == 0 { path.move_to(near(x), near(y)) } else { path.line_to(near(x), near(y)) }
                    }
                    (path.finish(), colour, scale)
                }
                Shape::Disc { centre: (x, y), radius, colour } => {
                    (PathBuilder::from_circle(near(*x), near(*y), near(*radius)), colour, scale)
                }
                Shape::Text { at, text, size, colour, anchor, turned } => {
                    let (letters, width) = outlines(text).map_err(|error| error.to_string())?;
                    let turn = Transform::from_rotate(if *turned { -90.0 } else { 0.0 });
                    let start = (-anchor.before().0 * width, CAPITALS / 2.0);
                    let place = scale
                        .pre_translate(near(at.0), near(at.1))
                        .pre_concat(turn)
                        .pre_scale(near(*size), near(*size))
                        .pre_translate(start.0 as f32, start.1 as f32);
                    (letters, colour, place)
                }
            };
            if let Some(path) = filled {
                pixels.fill_path(&path, &paint(colour), FillRule::Winding, place, None);
            }
        }
        Ok(pixels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::TextAnchor;

    fn inked(canvas: &Canvas) -> Vec<(usize, usize)> {
        let (width, _) = canvas.size(SCALE);
        let pixels = canvas.pixels().unwrap();
        let dark = pixels.pixels().iter().enumerate().filter(|(_, pixel)| pixel.red() < 128);
        dark.map(|(i, _)| (i % width as usize, i / width as usize)).collect()
    }

    #[test]
    fn sharp_turns_grow_no_spikes_and_widths_hold_in_any_direction() {
        let mut canvas = Canvas::new(40.0, 40.0);
        canvas.line(vec![(10.0, 30.0), (11.0, 10.0), (12.0, 30.0)], Colour::INK, 2.0);
        let top = inked(&canvas).into_iter().map(|(_, y)| y).min().unwrap();
        assert!((17..=19).contains(&top), "{top}");
        let area = |to: Point| {
            let mut canvas = Canvas::new(60.0, 60.0);
            canvas.line(vec![(5.0, 5.0), to], Colour::INK, 1.5);
            let darkness = |pixel: &tiny_skia::PremultipliedColorU8| f64::from(255 - pixel.red());
            canvas.pixels().unwrap().pixels().iter().map(darkness).sum::<f64>()
        };
        let (level, askew) = (area((55.0, 5.0)), area((5.0 + 40.0, 5.0 + 30.0)));
        assert!((level / askew - 1.0).abs() < 0.1, "{level} {askew}");
    }

    #[test]
    fn lines_are_cut_at_the_edges_of_the_picture() {
        let line = |from, to| {
            let mut canvas = Canvas::new(40.0, 20.0);
            // The width is chosen so that no pixel lies exactly on the rim.
            canvas.line(vec![from, to], Colour::INK, 2.1);
            inked(&canvas)
        };
        assert_eq!(line((-1e9, 10.0), (1e9, 10.0)), line((-5.0, 10.0), (45.0, 10.0)));
        assert_eq!(line((30.0, -1e9), (30.0, 1e9)), line((30.0, -5.0), (30.0, 25.0)));
        assert!(!line((30.0, -5.0), (30.0, 25.0)).is_empty());
        assert!(line((100.0, 0.0), (1e300, 1e300)).is_empty());
    }

    #[test]
    fn what_is_not_finite_is_refused() {
        let folder = replace::tests::folder("not-finite");
        let refused = |canvas: &Canvas, problem: &str| {
            for name in ["a.png", "a.svg"] {
                let message = canvas.write(folder.join(name)).unwrap_err().to_string();
                assert!(message.contains(problem), "{message}");
            }
        };
        refused(&Canvas::new(f64::NAN, 10.0), "NaN x 10 units");
        refused(&Canvas::new(10.0, f64::INFINITY), "10 x inf units");
        let draw: [fn(&mut Canvas); 6] = [
            |canvas| canvas.line(vec![(f64::NAN, 0.0), (f64::NAN, 10.0)], Colour::INK, 1.0),
            |canvas| canvas.line(vec![(0.0, 0.0), (5.0, 5.0)], Colour::INK, f64::NAN),
            |canvas| canvas.area(vec![(0.0, 0.0), (5.0, f64::INFINITY), (5.0, 0.0)], Colour::INK),
            |canvas| canvas.disc((f64::NAN, 0.0), 1.0, Colour::INK),
            |canvas| canvas.disc((5.0, 5.0), f64::INFINITY, Colour::INK),
            |canvas| canvas.text((5.0, 5.0), "a", f64::NAN, Colour::INK, TextAnchor::Left),
        ];
        for shape in draw {
            let mut canvas = Canvas::new(10.0, 10.0);
            shape(&mut canvas);
            refused(&canvas, "isn't finite");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_text_is_centred_by_its_capitals_and_may_be_turned() {
        let text = |turned| {
            let mut canvas = Canvas::new(60.0, 60.0);
            canvas.push(Shape::Text {
                at: (30.0, 30.0),
                text: "HEH".to_owned(),
                size: 12.0,
                colour: Colour::INK,
                anchor: TextAnchor::Middle,
                turned,
            });
            let (xs, ys): (Vec<_>, Vec<_>) = inked(&canvas).into_iter().unzip();
            let range = |of: &[usize]| (*of.iter().min().unwrap() as f64, *of.iter().max().unwrap() as f64);
            (range(&xs), range(&ys))
        };
        let (x, y) = text(false);
        assert!((f64::midpoint(y.0, y.1) - 60.0).abs() <= 1.0 && (y.1 - y.0 - 17.0).abs() <= 1.5, "{y:?}");
        assert!((f64::midpoint(x.0, x.1) - 60.0).abs() <= 1.5, "{x:?}");
        let (turned_x, turned_y) = text(true);
        assert!((turned_x.1 - turned_x.0 - (y.1 - y.0)).abs() <= 1.0, "{turned_x:?}");
        assert!((turned_y.1 - turned_y.0 - (x.1 - x.0)).abs() <= 1.0, "{turned_y:?}");
    }

    #[test]
    fn the_extension_chooses_and_others_are_refused() {
        let folder = replace::tests::folder("canvas");
        let mut canvas = Canvas::new(20.0, 10.0);
        canvas.text((10.0, 5.0), "a < b & c", 8.0, Colour::INK, TextAnchor::Middle);
        canvas.write(folder.join("a.PNG")).unwrap();
        canvas.write(folder.join("a.svg")).unwrap();
        let png = std::fs::read(folder.join("a.PNG")).unwrap();
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
        // The width and height of the header chunk.
        assert_eq!(png[16..24], [0, 0, 0, 40, 0, 0, 0, 20]);
        let svg = std::fs::read_to_string(folder.join("a.svg")).unwrap();
        assert!(svg.starts_with("<svg width=\"20\" height=\"10\" viewBox=\"0 0 20 10\""), "{svg}");
        assert!(svg.contains("a &lt; b &amp; c") && svg.trim_end().ends_with("</svg>"), "{svg}");
        for name in ["a.jpg", "a"] {
            let message = canvas.write(folder.join(name)).unwrap_err().to_string();
            assert!(message.contains(".svg or .png"), "{message}");
        }
        canvas.height = 1e6;
        let message = canvas.write(folder.join("b.png")).unwrap_err().to_string();
        assert!(message.contains("too large"), "{message}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
