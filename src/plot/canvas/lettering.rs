//! Text in the embedded font, because a bare machine has none.

use ab_glyph::{Font, FontRef, InvalidFont, PxScale, ScaleFont, point};
use plotters_backend::text_anchor::{HPos, Pos, VPos};
use plotters_backend::{BackendColor, BackendCoord, BackendTextStyle, FontFamily, FontTransform};

use crate::plot::{Colour, TextAnchor};

/// The height of capitals and digits of DejaVu Sans, in em; texts are vertically centred by it.
const CAPITALS: f64 = 0.729;
/// The SVG backend divides the size of a text by this.
const SVG_SIZE: f64 = 1.24;

/// A style of text with a size in pixels per em. It is drawn here rather than by plotters, which drops the space to the
/// left of letters and doesn't keep the vertical position.
pub(in crate::plot) struct Lettering {
    pub(in crate::plot) size: f64,
    pub(in crate::plot) colour: Colour,
    pub(in crate::plot) anchor: TextAnchor,
    pub(in crate::plot) turned: bool,
}

impl BackendTextStyle for Lettering {
    type FontError = InvalidFont;

    fn color(&self) -> BackendColor {
        BackendColor { alpha: 1.0, rgb: (self.colour.0, self.colour.1, self.colour.2) }
    }

    fn size(&self) -> f64 {
        self.size * SVG_SIZE
    }

    fn transform(&self) -> FontTransform {
        if self.turned { FontTransform::Rotate270 } else { FontTransform::None }
    }

    fn anchor(&self) -> Pos {
        let horizontal = match self.anchor {
            TextAnchor::Left => HPos::Left,
            TextAnchor::Middle => HPos::Center,
            TextAnchor::Right => HPos::Right,
        };
        Pos::new(horizontal, VPos::Center)
    }

    fn family(&self) -> FontFamily<'_> {
        // The generic family name, so that an SVG viewer can use its own font.
        FontFamily::SansSerif
    }

    fn layout_box(&self, text: &str) -> Result<((i32, i32), (i32, i32)), InvalidFont> {
        let width = set(text, self.size)?.1.round() as i32;
        Ok(((0, 0), (width, (CAPITALS * self.size).round() as i32)))
    }

    fn draw<E, F: FnMut(i32, i32, BackendColor) -> Result<(), E>>(
        &self,
        text: &str,
        (left, top): BackendCoord,
        mut draw: F,
    ) -> Result<Result<(), E>, InvalidFont> {
        let baseline = top + (CAPITALS * self.size).round() as i32;
        let colour = self.color();
        for letter in set(text, self.size)?.0 {
            let corner = letter.px_bounds().min;
            let (x0, y0) = (left + corner.x as i32, baseline + corner.y as i32);
            let mut done = Ok(());
            letter.draw(|x, y, coverage| {
                if coverage > 0.0 && done.is_ok() {
                    let alpha = f64::from(coverage.min(1.0));
                    done = draw(x0 + x as i32, y0 + y as i32, BackendColor { alpha, ..colour });
                }
            });
            if done.is_err() {
                return Ok(done);
            }
        }
        Ok(Ok(()))
    }
}

/// The outlines of a text that starts at the origin, and its width.
fn set(text: &str, size: f64) -> Result<(Vec<ab_glyph::OutlinedGlyph>, f64), InvalidFont> {
    let font = FontRef::try_from_slice(dejavu::sans::regular())?;
    let em = font.units_per_em().unwrap_or(2048.0);
    let scale = PxScale::from(size as f32 * font.height_unscaled() / em);
    let scaled = font.as_scaled(scale);
    let mut letters = Vec::new();
    let (mut x, mut before) = (0.0, None);
    for character in text.chars() {
        let id = font.glyph_id(character);
        x += before.map_or(0.0, |before| scaled.kern(before, id));
        letters.extend(font.outline_glyph(id.with_scale_and_position(scale, point(x, 0.0))));
        x += scaled.h_advance(id);
        before = Some(id);
    }
    Ok((letters, f64::from(x)))
}

/// The width of a text.
pub(in crate::plot) fn text_width(text: &str, size: f64) -> f64 {
    set(text, size).map_or(0.6 * size * text.chars().count() as f64, |(_, width)| width)
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
