//! Figures: panels of training curves, or of learned against target probabilities.

use std::path::Path;

use super::Panel;
use super::panel::PANEL;
use crate::Result;
use crate::plot::canvas::fitted;
use crate::plot::{Canvas, Colour, TextAnchor};

/// A named series of points `(x, y)`, such as the loss at each step.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// The points in the order in which they are joined. Points that aren't finite are left out and leave a gap.
    pub points: Vec<(f64, f64)>,
}

impl Curve {
    /// A curve through these points, of which there may be none.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect() }
    }
}

/// Panels side by side, in rows of at most three.
///
/// Pictures are the same on every machine, because the font is part of the library. Colours are those of Okabe and Ito,
/// which readers with a colour vision deficiency can tell apart.
///
/// ```
/// use gfn::plot::{Curve, Figure, Panel, Scale};
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
    /// A figure without panels; an empty title takes no space.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), panels: Vec::new() }
    }

    /// Adds a panel to the right of the last one. Rows have at most three panels; four panels make two rows of two.
    #[must_use]
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// Writes the figure as SVG or PNG (two pixels per unit), by the path's extension, replacing the file in one step.
    ///
    /// # Errors
    /// [`Error::Draw`](crate::Error::Draw) for another extension or too many panels; [`Error::Io`](crate::Error::Io) if
    /// the file can't be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        self.canvas().write(path.as_ref())
    }

    fn canvas(&self) -> Canvas {
        let n = self.panels.len();
        let columns = if n == 4 { 2 } else { n.clamp(1, 3) };
        let head = if self.title.is_empty() { 8.0 } else { 40.0 };
        let width = PANEL.0 * columns as f64;
        let height = head + PANEL.1 * n.div_ceil(columns) as f64;
        let mut canvas = Canvas::new(width, height);
        let title = fitted(&self.title, 18.0, width - 20.0);
        canvas.text((width / 2.0, 20.0), &title, 18.0, Colour::INK, TextAnchor::Middle);
        for (i, panel) in self.panels.iter().enumerate() {
            let (row, column) = (i / columns, i % columns);
            let corner = (PANEL.0 * column as f64, head + PANEL.1 * row as f64);
            panel.draw(&mut canvas, corner);
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
                let curve = Curve::new("a name that is far too long for any legend ".repeat(3), points.clone());
                let panel = Panel::new("é").y_scale(scale).curve(curve).reference(f64::NAN, "none");
                let figure = Figure::new("title").panel(panel);
                let folder = crate::io::replace::tests::folder("plot");
                figure.write(folder.join("a.svg")).unwrap();
                figure.write(folder.join("a.png")).unwrap();
                let svg = std::fs::read_to_string(folder.join("a.svg")).unwrap();
                assert!(!svg.contains("NaN") && svg.contains(">title<"), "{svg}");
                std::fs::remove_dir_all(folder).unwrap();
            }
        }
    }
}
