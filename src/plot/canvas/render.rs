//! Rendering of a canvas as SVG and as PNG.

use std::path::Path;

use plotters::backend::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters::style::{RGBColor, ShapeStyle};
use plotters_backend::BackendColor;

use super::lettering::Lettering;
use super::{Point, Shape, dashes};
use crate::io::replace;
use crate::plot::graph::gap;
use crate::plot::{Canvas, Colour};
use crate::{Error, Result};

/// Pixels of a PNG, and units of an SVG's inner coordinates, per unit of the canvas.
const SCALE: u32 = 2;
/// Each pixel of a PNG is the mean of a square of pixels with this side, which smooths the edges of all shapes.
const SUPERSAMPLING: u32 = 2;
/// The widest and tallest canvas, in units.
const MAX_SIDE: f64 = 16_000.0;
/// The largest area of a PNG, in square units. A square unit takes 60 bytes of memory.
const MAX_AREA: f64 = 1.2e7;

impl Canvas {
    /// Writes the picture as SVG or PNG (two pixels per unit), by the path's extension, replacing the file in one step.
    ///
    /// # Errors
    /// [`Error::Draw`] for another extension, a picture that is too large, a size or a shape with a number that isn't
    /// finite, or a failure of the drawing library; [`Error::Io`] if the file can't be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let fail = |problem: String| Error::draw(path, problem);
        if !(self.width.is_finite() && self.height.is_finite()) {
            let size = format!("{} x {} units", self.width, self.height);
            return Err(fail(format!("the picture is {size}, expected a finite width and height")));
        }
        if self.width.max(self.height) > MAX_SIDE {
            return Err(fail(self.too_large("")));
        }
        if let Some(shape) = self.shapes.iter().find(|shape| !shape.is_finite()) {
            return Err(fail(format!("{shape:?} has a number that isn't finite: leave such shapes or points out")));
        }
        let extension = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
        match extension.as_ref().and_then(|e| e.to_str()) {
            Some("svg") => replace::replace_bytes(path, self.svg().map_err(fail)?.as_bytes()),
            Some("png") if self.width * self.height > MAX_AREA => Err(fail(self.too_large(", or write it as SVG"))),
            Some("png") => {
                let pixels = self.pixels().map_err(fail)?;
                let size = self.size(SCALE);
                replace::replace(path, |temporary| {
                    let mut backend = BitMapBackend::new(temporary, size);
                    backend
                        .blit_bitmap((0, 0), size, &pixels)
                        .and_then(|()| backend.present())
                        .map_err(|error| fail(error.to_string()))
                })
            }
            _ => Err(fail("unknown extension: expected a path that ends in .svg or .png".to_owned())),
        }
    }

    fn too_large(&self, or: &str) -> String {
        let (width, height) = self.size(1);
        format!("{width} x {height} units are too large: draw fewer panels or cells in one file{or}")
    }

    fn size(&self, scale: u32) -> (u32, u32) {
        let side = |units: f64| units.clamp(1.0, MAX_SIDE).ceil() as u32 * scale;
        (side(self.width), side(self.height))
    }

    fn svg(&self) -> std::result::Result<String, String> {
        let (width, height) = self.size(SCALE);
        let mut svg = String::new();
        self.draw(&mut SVGBackend::with_string(&mut svg, (width, height)), SCALE, Target::Vector)?;
        // The backend only has integer coordinates. Drawing at a multiple and showing at the true size keeps half
        // units.
        let (shown_width, shown_height) = self.size(1);
        let inner = format!("width=\"{width}\" height=\"{height}\" viewBox");
        let outer = format!("width=\"{shown_width}\" height=\"{shown_height}\" viewBox");
        Ok(svg.replacen(&inner, &outer, 1))
    }

    /// The picture as RGB bytes at [`SCALE`].
    fn pixels(&self) -> std::result::Result<Vec<u8>, String> {
        let fine = self.size(SCALE * SUPERSAMPLING);
        let mut drawn = vec![0; fine.0 as usize * fine.1 as usize * 3];
        self.draw(&mut BitMapBackend::with_buffer(&mut drawn, fine), SCALE * SUPERSAMPLING, Target::Pixels)?;
        let (width, height) = self.size(SCALE);
        let k = SUPERSAMPLING as usize;
        let stride = fine.0 as usize * 3;
        let mut pixels = Vec::with_capacity(width as usize * height as usize * 3);
        for y in 0..height as usize {
            for x in 0..width as usize {
                for channel in 0..3 {
                    let corner = y * k * stride + x * k * 3 + channel;
                    let sum: usize = (0..k * k).map(|i| usize::from(drawn[corner + i / k * stride + i % k * 3])).sum();
                    pixels.push((sum / (k * k)) as u8);
                }
            }
        }
        Ok(pixels)
    }

    /// Draws the shapes on a backend, for both formats.
    fn draw<B: DrawingBackend>(&self, backend: &mut B, scale: u32, target: Target) -> std::result::Result<(), String> {
        let k = f64::from(scale);
        let to = |(x, y): Point| ((x * k).round() as i32, (y * k).round() as i32);
        let (width, height) = self.size(scale);
        let white = style(Colour::WHITE, 1.0);
        backend.draw_rect((0, 0), (width as i32, height as i32), &white, true).map_err(|error| error.to_string())?;
        for shape in &self.shapes {
            match shape {
                Shape::Line { points, colour, width, dash } => {
                    let pieces = match dash {
                        Some(length) => dashes(points, *length),
                        None => vec![points.clone()],
                    };
                    pieces.into_iter().try_for_each(|piece| match target {
                        Target::Vector => {
                            let style = style(*colour, width * k);
                            backend.draw_path(piece.into_iter().map(to), &style)
                        }
                        Target::Pixels => stroke(backend, &piece, *colour, *width, k),
                    })
                }
                Shape::Area { points, colour } => {
                    backend.fill_polygon(points.iter().copied().map(to), &style(*colour, 1.0))
                }
                Shape::Disc { centre, radius, colour } => {
                    let radius = (radius * k).round() as u32;
                    backend.draw_circle(to(*centre), radius, &style(*colour, 1.0), true)
                }
                Shape::Text { at, text, size, colour, anchor, turned } => {
                    // The SVG backend centres texts by the height of an x, which is lower than a capital.
                    let drop = match target {
                        Target::Vector => 0.1 * size,
                        Target::Pixels => 0.0,
                    };
                    let at = if *turned { (at.0 + drop, at.1) } else { (at.0, at.1 + drop) };
                    let lettering = Lettering { size: size * k, colour: *colour, anchor: *anchor, turned: *turned };
                    backend.draw_text(text, &lettering, to(at))
                }
            }
            .map_err(|error| error.to_string())?;
        }
        backend.present().map_err(|error| error.to_string())
    }
}

/// The kind of backend.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Vector,
    Pixels,
}

/// Draws a line of any width pixel by pixel, with round joints and straight ends. plotters' own wide lines have spikes
/// at sharp turns, and a thickness that depends on their direction.
fn stroke<B: DrawingBackend>(
    backend: &mut B,
    points: &[Point],
    colour: Colour,
    width: f64,
    k: f64,
) -> std::result::Result<(), plotters_backend::DrawingErrorKind<B::ErrorType>> {
    let colour = BackendColor { alpha: 1.0, rgb: (colour.0, colour.1, colour.2) };
    let half = (width * k / 2.0).max(0.5);
    let (columns, rows) = backend.get_size();
    let last = points.len().saturating_sub(2);
    for (i, pair) in points.windows(2).enumerate() {
        let (p, q) = ((pair[0].0 * k, pair[0].1 * k), (pair[1].0 * k, pair[1].1 * k));
        let (dx, dy) = (q.0 - p.0, q.1 - p.1);
        let steep = dy.abs() > dx.abs();
        // Iterates along the longer direction, and across it only as far as the line is wide.
        let swap = |(x, y): Point| if steep { (y, x) } else { (x, y) };
        let (a, b) = (swap(p), swap(q));
        let slope = if b.0 == a.0 { 0.0 } else { (b.1 - a.1) / (b.0 - a.0) };
        let (low, high) = (a.0.min(b.0), a.0.max(b.0));
        let reach = half * 1.5 + 1.0;
        // Lines may leave the picture by any distance.
        let (long, across) = if steep { (rows, columns) } else { (columns, rows) };
        let within =
            |from: f64, to: f64, size: u32| from.floor().max(0.0) as i32..=to.ceil().min(f64::from(size) - 1.0) as i32;
        for m in within(low - half, high + half, long) {
            let centre = a.1 + slope * (f64::from(m).clamp(low, high) - a.0);
            for n in within(centre - reach, centre + reach, across) {
                let (x, y) = swap((f64::from(m), f64::from(n)));
                let along = (x - p.0) * dx + (y - p.1) * dy;
                let beyond = (i == 0 && along < 0.0) || (i == last && along > dx * dx + dy * dy);
                if !beyond && gap((x, y), p, q) <= half {
                    backend.draw_pixel((x as i32, y as i32), colour)?;
                }
            }
        }
    }
    Ok(())
}

fn style(colour: Colour, width: f64) -> ShapeStyle {
    ShapeStyle {
        color: RGBColor(colour.0, colour.1, colour.2).into(),
        filled: true,
        stroke_width: width.round().max(1.0) as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::TextAnchor;

    fn inked(canvas: &Canvas) -> Vec<(usize, usize)> {
        let (width, _) = canvas.size(SCALE);
        let pixels = canvas.pixels().unwrap();
        let dark = pixels.chunks(3).enumerate().filter(|(_, rgb)| rgb[0] < 128);
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
            inked(&canvas).len() as f64
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
        assert!(svg.starts_with("<svg width=\"20\" height=\"10\" viewBox=\"0 0 40 20\""), "{svg}");
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
