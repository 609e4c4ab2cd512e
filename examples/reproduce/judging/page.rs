//! A judgement as a page that needs no other file.

use std::fmt::Write;

use gfn_judge::{Interval, Judgement, Missing};

use crate::prelude::*;

/// Returns the rows of a judgement, by name.
pub(super) fn rows(judged: &Judgement, invalid: usize) -> Vec<(&'static str, String)> {
    let range = |of: Interval| format!("{:.4} ({:.4} to {:.4})", of.estimate, of.low, of.high);
    let verdict = if judged.like_perfect { "nothing" } else { "it isn't a perfect sampler" };
    vec![
        ("samples", format!("{}, {} different, of {} objects", judged.samples, judged.distinct, judged.objects)),
        ("no objects of the task", invalid.to_string()),
        ("total variation (interval of the sampler's)", range(judged.tv)),
        ("  of as many perfect samples (range)", range(judged.tv_floor)),
        ("Jensen-Shannon divergence", range(judged.jsd)),
        ("  of as many perfect samples (range)", range(judged.jsd_floor)),
        ("flow consistency on subsets", range(judged.consistency.fcs)),
        ("  of as many perfect samples", format!("{:.4}", judged.consistency.floor)),
        ("modes", format!("{} of {}", judged.modes_found, judged.modes)),
        ("mass that was never sampled", format!("{:.4}", judged.missing_mass)),
        ("what speaks against it", verdict.to_owned()),
    ]
}

/// Writes the page: the rows, a dot for each object, the missing objects.
pub(super) fn write<'a>(
    path: &Path,
    title: &str,
    rows: &[(&str, String)],
    missing: impl Iterator<Item = (&'a String, &'a Missing)>,
    target_and_share: impl Iterator<Item = (f64, f64)>,
) -> Result<()> {
    let panel = Panel::learned_against_target("objects", target_and_share).labels("probability", "share of samples");
    let (title, picture) = (escaped(title), Figure::new("").panel(panel).to_svg()?);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<style>body {{ font-family: sans-serif; margin: 2em; }} \
         td, th {{ padding: 0.2em 1em; text-align: left; }} code {{ white-space: pre-wrap; }}</style></head>\n<body><h1>{title}</h1>\n<table>\n"
    );
    for (name, value) in rows {
        let _ = writeln!(out, "<tr><td>{}</td><td>{}</td></tr>", escaped(name), escaped(value));
    }
    let _ = write!(out, "</table>\n{picture}\n");
    let mut missing = missing.peekable();
    if missing.peek().is_some() {
        out += "<h2>The heaviest objects that were never sampled</h2>\n<table><tr><th>object</th><th>probability</th><th>missed by chance</th></tr>\n";
        for (text, Missing { probability, by_chance, .. }) in missing {
            let cells = format!("<code>{}</code></td><td>{probability:.2e}</td><td>{by_chance:.1e}", escaped(text));
            let _ = writeln!(out, "<tr><td>{cells}</td></tr>");
        }
        out += "</table>\n";
    }
    out += "<p>Intervals hold with 95 % for any sampler. A perfect sampler's distances aren't 0 either: its samples are as few.</p>\n</body></html>\n";
    std::fs::write(path, out).map_err(|source| Error::io(path, source))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
