//! Figures, which consist of panels with curves, dots or heat maps.

use std::path::Path;

use gfn::Result;

use super::Panel;
use super::panel::{HEIGHT, WIDTH};
use crate::Canvas;
use crate::canvas::draw_title;

/// A named curve through points `(x, y)`, such as the loss at each step.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// The name of the curve in the legend.
    pub name: String,
    /// The points of the curve, which are joined in this order. A point that isn't finite leaves a gap.
    pub points: Vec<(f64, f64)>,
}

impl Curve {
    /// Creates a curve through these points. A curve without points is allowed.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect() }
    }
}

/// A figure of panels side by side, in rows of at most three.
///
/// ```
/// use gfn_plot::{Curve, Figure, Panel, Scale};
/// # let folder = std::env::temp_dir().join("gfn-doc-figure");
/// # std::fs::create_dir_all(&folder).unwrap();
/// let loss = Curve::new("loss", (0..100).map(|step| (step as f64, (-0.05 * step as f64).exp())));
/// let log_z = Curve::new("learned", (0..100).map(|step| (step as f64, 6.4 - 6.0 / (1.0 + step as f64))));
/// Figure::new("ring, 4 nodes")
///     .panel(Panel::new("loss").y_scale(Scale::Log).curve(loss))
///     .panel(Panel::new("log Z").curve(log_z).reference(6.39694, "true"))
///     .write(folder.join("training.svg"))?;
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Figure {
    title: String,
    panels: Vec<Panel>,
}

impl Figure {
    /// Creates a figure without panels. An empty title takes no space.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), panels: Vec::new() }
    }

    /// Adds a panel. Panels are placed in rows of at most three, from left to right. Four panels are placed
    /// in two rows of two.
    #[must_use]
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// Writes the figure as SVG or PNG. The extension of the path selects the format (see [`Canvas::write`]).
    ///
    /// # Errors
    /// [`Error::Draw`](gfn::Error::Draw) for another extension and for too many panels;
    /// [`Error::Io`](gfn::Error::Io) if the file can't be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        self.canvas().write(path)
    }

    /// Returns the figure as the text of an SVG file.
    ///
    /// # Errors
    /// [`Error::Draw`](gfn::Error::Draw) for too many panels.
    pub fn to_svg(&self) -> Result<String> {
        self.canvas().to_svg()
    }

    fn canvas(&self) -> Canvas {
        let n = self.panels.len();
        let columns = if n == 4 { 2 } else { n.clamp(1, 3) };
        let mut canvas = Canvas::new(WIDTH * columns as f64, 0.0);
        let head = draw_title(&mut canvas, &self.title);
        canvas.height = head + HEIGHT * n.div_ceil(columns) as f64;
        for (i, panel) in self.panels.iter().enumerate() {
            canvas
                .place(&panel.canvas(), (WIDTH * (i % columns) as f64, head + HEIGHT * (i / columns) as f64));
        }
        canvas
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scale;
    use super::*;

    #[test]
    fn any_curve_can_be_drawn() {
        let curves = [
            vec![],
            vec![(0.0, f64::NAN), (f64::INFINITY, 1.0)],
            vec![(1.0, 1.0)],
            vec![(0.0, f64::MAX), (1.0, f64::MIN)],
            vec![(0.0, -1.0), (1.0, 0.0)],
        ];
        for points in curves {
            for scale in [Scale::Linear, Scale::Log] {
                let curve =
                    Curve::new("a name that is far too long for any legend ".repeat(3), points.clone());
                let panel = Panel::new("é").y_scale(scale).curve(curve).reference(f64::NAN, "none");
                let svg = Figure::new("title").panel(panel).to_svg().unwrap();
                assert!(!svg.contains("NaN") && svg.contains(">title<"), "{svg}");
            }
        }
    }
}
