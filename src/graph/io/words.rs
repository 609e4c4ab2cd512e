//! Words of a file, as errors name them.

pub(super) fn found(word: Option<&str>) -> String {
    word.map_or_else(|| "missing".to_owned(), shown)
}

/// A word in quotes, cut if it is long: a binary file read by mistake must not fill the terminal.
pub(super) fn shown(word: &str) -> String {
    let mut short: String = word.escape_debug().take(24).collect();
    if word.chars().count() > 24 {
        short.push('…');
    }
    format!("`{short}`")
}
