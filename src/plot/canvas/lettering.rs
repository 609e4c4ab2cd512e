//! Text in the embedded font, because a bare machine has none.

use ab_glyph::{Font, FontRef, InvalidFont, OutlineCurve};
use tiny_skia::{Path, PathBuilder};

/// The height of capitals and digits of DejaVu Sans, in em; texts are vertically centred by it.
pub(in crate::plot) const CAPITALS: f64 = 0.729;

/// The outlines of a text that starts at the origin, `None` if it has none, and its width, both in em.
pub(super) fn outlines(text: &str) -> Result<(Option<Path>, f64), InvalidFont> {
    let font = FontRef::try_from_slice(dejavu::sans::regular())?;
    let em = font.units_per_em().unwrap_or(2048.0);
    let (mut path, mut x, mut before) = (PathBuilder::new(), 0.0, None);
    for character in text.chars() {
        let id = font.glyph_id(character);
        x += before.map_or(0.0, |before| font.kern_unscaled(before, id));
        let mut pen = None;
        for curve in font.outline(id).into_iter().flat_map(|outline| outline.curves) {
            let at = |p: ab_glyph::Point| ((x + p.x) / em, -p.y / em);
            let (OutlineCurve::Line(from, to) | OutlineCurve::Quad(from, _, to) | OutlineCurve::Cubic(from, _, _, to)) =
                curve;
            if pen != Some(from) {
                path.move_to(at(from).0, at(from).1);
            }
            let (x, y) = at(to);
            match curve {
                OutlineCurve::Line(..) => path.line_to(x, y),
                OutlineCurve::Quad(_, a, _) => path.quad_to(at(a).0, at(a).1, x, y),
                OutlineCurve::Cubic(_, a, b, _) => path.cubic_to(at(a).0, at(a).1, at(b).0, at(b).1, x, y),
            }
            pen = Some(to);
        }
        x += font.h_advance_unscaled(id);
        before = Some(id);
    }
    Ok((path.finish(), f64::from(x / em)))
}

/// The width of a text.
pub(in crate::plot) fn text_width(text: &str, size: f64) -> f64 {
    size * outlines(text).map_or(0.6 * text.chars().count() as f64, |(_, width)| width)
}

/// A text cut with an ellipsis, if necessary, to fit a width.
pub(in crate::plot) fn fitted(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let characters: Vec<char> = text.chars().collect();
    let cut = |kept: usize| characters[..kept].iter().chain(&['…']).collect::<String>();
    let fits = |kept: usize| text_width(&cut(kept), size) <= width;
    if !fits(0) {
        return String::new();
    }
    // `low` characters fit, `high` don't.
    let (mut low, mut high) = (0, characters.len());
    while high > low + 1 {
        let half = usize::midpoint(low, high);
        *(if fits(half) { &mut low } else { &mut high }) = half;
    }
    cut(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_no_further_than_it_must_be() {
        let text = "CC(=O)Oc1ccccc1C(=O)O and ä more";
        let whole = text_width(text, 12.0);
        let kept = |width: f64| {
            let cut = fitted(text, 12.0, width);
            assert!(text_width(&cut, 12.0) <= width, "{cut}");
            let kept = cut.strip_suffix('…').unwrap();
            assert!(text.starts_with(kept));
            let one_more = text.chars().take(kept.chars().count() + 1).chain(['…']).collect::<String>();
            assert!(text_width(&one_more, 12.0) > width, "{cut}");
            kept.chars().count()
        };
        let kept: Vec<usize> = [13.0, 40.0, 100.0, 150.0, whole - 0.1].into_iter().map(kept).collect();
        assert!(kept[0] == 0 && kept.is_sorted_by(|a, b| a < b), "{kept:?}");
        assert_eq!(fitted(text, 12.0, whole), text);
        assert_eq!(fitted(text, 12.0, 5.0), "");
    }
}
