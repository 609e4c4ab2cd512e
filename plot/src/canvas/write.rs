//! Output of canvases as SVG or PNG.

use std::fmt::Write;
use std::path::Path;

use gfn::{Error, Result};

use super::{Point, Shape};
use crate::{Canvas, Colour, TextAnchor};

/// The largest width and the largest height of a picture, in units of the canvas.
const MAX_SIDE: f64 = 16_000.0;
/// The height of capital letters and digits in DejaVu Sans, relative to an em. This height is needed to
/// centre texts vertically.
const CAPITAL_HEIGHT: f64 = 0.729;
/// The length of the gap between two dashes, relative to the length of a dash.
const DASH_GAP: f64 = 2.0 / 3.0;

impl Canvas {
    /// Writes the picture to a file and replaces an existing file in one step. The extension of the path
    /// selects the format: SVG or, with the feature `png`, PNG with two pixels per unit.
    ///
    /// # Errors
    /// [`Error::Draw`] for another extension, for a picture that is too large, and for a size or a shape with
    /// a number that isn't finite; [`Error::Io`] if the file can't be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let fail = |problem: String| Error::draw(path, problem);
        self.check().map_err(fail)?;
        let extension = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
        let bytes = match extension.as_ref().and_then(|e| e.to_str()) {
            Some("svg") => self.svg().into_bytes(),
            Some("png") => self.png().map_err(fail)?,
            _ => {
                return Err(fail(
                    "the extension is unknown, expected a path that ends in .svg or .png".to_owned(),
                ));
            }
        };
        // The picture is written to a temporary file, which then replaces the old picture in one step. A
        // program that reads the path therefore gets either the old or the new picture.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = path.with_file_name(format!(".{}.{name}", std::process::id()));
        let written = std::fs::write(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, path));
        written.map_err(|source| {
            // An error of this removal is ignored, for example if the temporary file was never created. The
            // error of writing or renaming is reported instead.
            let _ = std::fs::remove_file(&temporary);
            Error::io(path, source)
        })
    }

    /// Returns the picture as the text of an SVG file.
    ///
    /// # Errors
    /// [`Error::Draw`] for a picture that is too large, or that has a number that isn't finite.
    pub fn to_svg(&self) -> Result<String> {
        self.check().map_err(|problem| Error::draw("a picture", problem))?;
        Ok(self.svg())
    }

    /// Checks that all numbers of the picture are finite, and that the picture isn't too large.
    fn check(&self) -> std::result::Result<(), String> {
        let size = format!("{} x {} units", self.width, self.height);
        if !(self.width.is_finite() && self.height.is_finite()) {
            return Err(format!("the picture is {size}, expected a finite width and height"));
        }
        if self.width.max(self.height) > MAX_SIDE {
            return Err(format!("the picture is too large ({size}): draw fewer panels or cells in one file"));
        }
        match self.shapes.iter().find(|shape| !shape.is_finite()) {
            Some(shape) => Err(format!(
                "{shape:?} has a number that isn't finite: leave out shapes and points that aren't finite"
            )),
            None => Ok(()),
        }
    }

    fn svg(&self) -> String {
        let [width, height] = [self.width, self.height].map(|side| side.max(1.0).ceil());
        let shapes: String = self.shapes.iter().map(Shape::svg).collect();
        // The widths of texts were computed for DejaVu Sans. Verdana is listed as a fallback, because it has
        // about the same widths.
        format!(
            "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"DejaVu Sans, Verdana, sans-serif\" xmlns=\"http://www.w3.org/2000/svg\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{shapes}</svg>\n"
        )
    }

    #[cfg(not(feature = "png"))]
    fn png(&self) -> std::result::Result<Vec<u8>, String> {
        Err("PNG needs the feature `png` of gfn-plot: enable the feature, or give a path that ends in .svg"
            .to_owned())
    }

    #[cfg(feature = "png")]
    fn png(&self) -> std::result::Result<Vec<u8>, String> {
        use resvg::{tiny_skia, usvg};
        /// The largest area of a picture that is written as PNG, in square units. Each square unit takes 32
        /// bytes of memory.
        const MAX_AREA: f64 = 1.2e7;
        if self.width * self.height > MAX_AREA {
            let size = format!("{} x {} units", self.width, self.height);
            return Err(format!(
                "the picture is too large ({size}): draw fewer panels or cells in one file, or write it as \
                 SVG"
            ));
        }
        let mut options = usvg::Options { font_family: "DejaVu Sans".to_owned(), ..usvg::Options::default() };
        options.fontdb_mut().load_font_data(dejavu::sans::regular().to_vec());
        let tree = usvg::Tree::from_str(&self.svg(), &options).map_err(|error| error.to_string())?;
        let [width, height] = [tree.size().width(), tree.size().height()].map(|side| 2 * side as u32);
        let mut pixels = tiny_skia::Pixmap::new(width, height).ok_or(
            "the pixels of the picture don't fit into memory: draw fewer panels or cells in one file",
        )?;
        resvg::render(&tree, tiny_skia::Transform::from_scale(2.0, 2.0), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| error.to_string())
    }
}

/// Rounds a coordinate to two decimals, which keeps files short.
fn round2(x: f64) -> f64 {
    (x * 100.0).round() / 100.0
}

fn point_list(points: &[Point]) -> String {
    points.iter().map(|p| format!("{},{}", round2(p.0), round2(p.1))).collect::<Vec<_>>().join(" ")
}

fn hex(colour: Colour) -> String {
    format!("#{:02x}{:02x}{:02x}", colour.0, colour.1, colour.2)
}

impl Shape {
    /// Returns `true` if all numbers of the shape are finite.
    fn is_finite(&self) -> bool {
        let (points, sizes) = match self {
            Self::Line { points, width, dash, .. } => (&points[..], [*width, dash.unwrap_or(0.0)]),
            Self::Area { points, .. } => (&points[..], [0.0; 2]),
            Self::Disc { centre, radius, .. } => (std::slice::from_ref(centre), [*radius, 0.0]),
            Self::Text { at, size, .. } => (std::slice::from_ref(at), [*size, 0.0]),
        };
        points.iter().flat_map(|p| [p.0, p.1]).chain(sizes).all(f64::is_finite)
    }

    fn svg(&self) -> String {
        let mut svg = String::new();
        // Writing to a string can't fail.
        let _ = match self {
            Self::Line { points, colour, width, dash } => {
                let dash =
                    dash.map(|dash| format!(" stroke-dasharray=\"{dash} {}\"", round2(dash * DASH_GAP)));
                writeln!(
                    svg,
                    "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" \
                     stroke-linejoin=\"round\"{}/>",
                    point_list(points),
                    hex(*colour),
                    dash.unwrap_or_default()
                )
            }
            Self::Area { points, colour } => {
                writeln!(svg, "<polygon points=\"{}\" fill=\"{}\"/>", point_list(points), hex(*colour))
            }
            Self::Disc { centre, radius, colour } => {
                let [x, y, radius] = [centre.0, centre.1, *radius].map(round2);
                writeln!(svg, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{}\"/>", hex(*colour))
            }
            Self::Text { at, text, size, colour, anchor, turned } => {
                let [x, y, size, baseline] =
                    [at.0, at.1, *size, at.1 + CAPITAL_HEIGHT / 2.0 * size].map(round2);
                let turn =
                    if *turned { format!(" transform=\"rotate(270 {x} {y})\"") } else { String::new() };
                let anchor = match anchor {
                    TextAnchor::Left => "start",
                    TextAnchor::Middle => "middle",
                    TextAnchor::Right => "end",
                };
                let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                writeln!(
                    svg,
                    "<text x=\"{x}\" y=\"{baseline}\"{turn} font-size=\"{size}\" text-anchor=\"{anchor}\" \
                     fill=\"{}\">{text}</text>",
                    hex(*colour)
                )
            }
        };
        svg
    }
}
