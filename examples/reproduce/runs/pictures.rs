//! Curves of several runs in one picture for each figure.

use std::path::{Path, PathBuf};

use gfn::Result;
use gfn_plot::{Curve, Figure, Panel, Scale};

use super::recorded::{Recorded, labels, measured, smoothed};
use crate::cli::{Written, words};

/// Points of a curve from which steps are averaged.
const POINTS: usize = 200;
/// Ratio of the largest to the least value from which an axis is logarithmic.
const WIDE: f64 = 30.0;

/// Draws a picture of each figure that any of the runs recorded; the figures.
pub(crate) fn draw(runs: &[Recorded], folder: &Path, written: &Written) -> Result<Vec<String>> {
    let paths: Vec<PathBuf> = runs.iter().map(|run| run.path.clone()).collect();
    let (names, drawn) = (labels(&paths), measured(runs));
    let mut out = Vec::new();
    for figure in drawn {
        let Some(panel) = panel(&figure, runs, &names) else { continue };
        let picture = Figure::new("").panel(panel);
        let file: String = figure.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
        for extension in ["svg", "png"] {
            let path = folder.join(format!("{file}.{extension}"));
            picture.write(&path)?;
            written.add(&path);
        }
        out.push(figure);
    }
    Ok(out)
}

/// The curves of a figure; `None` where no run has it.
fn panel(figure: &str, runs: &[Recorded], names: &[String]) -> Option<Panel> {
    let curves: Vec<Vec<(f64, f64)>> = runs.iter().map(|run| run.curve(figure)).collect();
    let longest = curves.iter().map(Vec::len).max().filter(|longest| *longest > 0)?;
    // The same for all, so that no curve is smoother than another.
    let window = longest.div_ceil(POINTS);
    let title = match window {
        1 => words(figure),
        n => format!("{}, means of {n} steps", words(figure)),
    };
    let values = || curves.iter().flatten().map(|point| point.1).filter(|value| value.is_finite());
    let (low, high) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    let wide = figure != "log_z" && low > 0.0 && high / low > WIDE;
    let mut panel = Panel::new(title).y_scale(if wide { Scale::Log } else { Scale::Linear });
    for (curve, name) in curves.iter().zip(names) {
        if !curve.is_empty() {
            panel = panel.curve(Curve::new(name, smoothed(curve, window)));
        }
    }
    match (figure, true_log_z(runs)) {
        ("log_z", Some(value)) => Some(panel.reference(value, "true")),
        _ => Some(panel),
    }
}

/// The true log Z, where all runs that know it agree.
fn true_log_z(runs: &[Recorded]) -> Option<f64> {
    let known: Vec<f64> = runs.iter().filter_map(|run| run.figure("log_z_true")).collect();
    let first = *known.first()?;
    known.iter().all(|value| (value - first).abs() < 1e-9).then_some(first)
}
