//! The quoting of words of a file in error messages.

/// Returns a word in quotes, or "missing" if there is no word.
pub(super) fn quote_or_missing(word: Option<&str>) -> String {
    word.map_or_else(|| "missing".to_owned(), quote)
}

/// Returns a word in quotes, cut to 24 characters. Without the cut, a binary file that is read by mistake
/// would fill the terminal.
pub(super) fn quote(word: &str) -> String {
    let mut short: String = word.escape_debug().take(24).collect();
    if word.chars().count() > 24 {
        short.push('…');
    }
    format!("`{short}`")
}
