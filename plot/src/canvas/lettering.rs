//! Widths of texts, which are computed without a font file.

/// The widths of the characters from space to `~` in DejaVu Sans, in hundredths of an em.
const WIDTHS: [u8; 95] = [
    32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79, 60, 79, 69, 63,
    61, 73, 68, 99, 69, 61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35, 63, 63, 28, 28, 58, 28, 97,
    63, 61, 63, 63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84,
];

/// Returns the width of a text whose em has the height `size`. A character beyond ASCII, except for the
/// ellipsis, is assumed to be as wide as `o`.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let width = |c: char| match c {
        ' '..='~' => WIDTHS[c as usize - 32],
        '…' => 100,
        _ => 61,
    };
    size * text.chars().map(|c| f64::from(width(c))).sum::<f64>() / 100.0
}

/// Returns the text, cut and with an ellipsis if it is wider than `width`.
pub(crate) fn cut_to_width(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut cut = text.to_owned();
    while cut.pop().is_some() {
        if text_width(&cut, size) + size <= width {
            return cut + "…";
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_no_further_than_it_must_be() {
        let text = "CC(=O)Oc1ccccc1C(=O)O and ä more";
        let whole = text_width(text, 12.0);
        let kept = |width: f64| {
            let cut = cut_to_width(text, 12.0, width);
            assert!(text_width(&cut, 12.0) <= width, "{cut}");
            let kept = cut.strip_suffix('…').unwrap();
            assert!(text.starts_with(kept));
            let one_more = text.chars().take(kept.chars().count() + 1).chain(['…']).collect::<String>();
            assert!(text_width(&one_more, 12.0) > width, "{cut}");
            kept.chars().count()
        };
        let kept: Vec<usize> = [13.0, 40.0, 100.0, 150.0, whole - 0.1].into_iter().map(kept).collect();
        assert!(kept[0] == 0 && kept.is_sorted_by(|a, b| a < b), "{kept:?}");
        assert_eq!(cut_to_width(text, 12.0, whole), text);
        assert_eq!(cut_to_width(text, 12.0, 5.0), "");
    }
}
