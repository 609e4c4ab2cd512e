//! Tables of results, which are printed as aligned plain text.

use std::fmt;

/// A cell of a [`Table`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Cell {
    /// A text, which is aligned to the right if its column has numbers, and to the left otherwise.
    Text(String),
    /// A number that is already formatted as text. The number is aligned to the right.
    Number(String),
    /// A missing value, which is printed as a dash.
    Missing,
}

impl Cell {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Number(text) => text,
            Self::Missing => "-",
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Number(number(value))
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Self::Number(value.to_string())
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Self {
        Self::Number(value.to_string())
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

/// A table of results, printed with aligned columns. Columns with numbers are aligned to the right, and
/// columns of texts to the left.
///
/// ```
/// use gfn_plot::Table;
/// let table = Table::new(["objective", "JSD", "rings"])
///     .row(["trajectory balance".into(), 0.00321.into(), 6usize.into()])
///     .row(["flow matching".into(), 1.5e-7.into(), None::<usize>.into()]);
/// assert_eq!(
///     table.to_string(),
///     "objective                JSD  rings\n\
///      ------------------  --------  -----\n\
///      trajectory balance  0.003210      6\n\
///      flow matching       1.500e-7      -\n"
/// );
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Creates a table without rows. `header` holds the headings of its columns.
    #[must_use]
    pub fn new<S: Into<String>>(header: impl IntoIterator<Item = S>) -> Self {
        Self { header: header.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row, and returns the table. If the row has fewer cells than the table has columns, the
    /// remaining cells are empty. If it has more cells, the table gets columns without headings.
    #[must_use]
    pub fn row(mut self, cells: impl IntoIterator<Item = Cell>) -> Self {
        self.push(cells);
        self
    }

    /// Adds a row. The number of cells may differ from the number of columns, as in [`row`](Self::row).
    pub fn push(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns the texts of all cells, the headings first.
    pub(crate) fn texts(&self) -> Vec<Vec<&str>> {
        let header = self.header.iter().map(String::as_str).collect();
        let rows = self.rows.iter().map(|row| row.iter().map(Cell::text).collect());
        std::iter::once(header).chain(rows).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = self.header.iter().map(|text| Cell::Text(text.clone())).collect();
        let lines: Vec<&Vec<Cell>> = std::iter::once(&header).chain(&self.rows).collect();
        let n = lines.iter().map(|line| line.len()).max().unwrap_or(0);
        let width = |text: &str| text.chars().count();
        let mut widths = vec![0; n];
        let mut is_right = vec![false; n];
        for k in 0..n {
            widths[k] =
                lines.iter().filter_map(|line| line.get(k)).map(|cell| width(cell.text())).max().unwrap_or(0);
            let cells: Vec<&Cell> = self.rows.iter().filter_map(|row| row.get(k)).collect();
            let has_text = cells.iter().any(|cell| matches!(cell, Cell::Text(_)));
            let has_number = cells.iter().any(|cell| matches!(cell, Cell::Number(_)));
            is_right[k] = has_number || (!cells.is_empty() && !has_text);
        }
        let rule = widths.iter().map(|&width| Cell::Text("-".repeat(width))).collect();
        for line in lines[..1].iter().copied().chain([&rule]).chain(lines[1..].iter().copied()) {
            let mut parts = Vec::new();
            for (k, cell) in line.iter().enumerate() {
                let room = " ".repeat(widths[k] - width(cell.text()));
                parts.push(if is_right[k] { room + cell.text() } else { cell.text().to_owned() + &room });
            }
            writeln!(f, "{}", parts.join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// Formats a number with four significant digits, or as a whole number if its whole part has more digits.
/// Numbers below 0.0001 and of 10 million or more are in scientific notation.
///
/// ```
/// use gfn_plot::number;
/// let shown = [6.39694, 0.00321, 1.5e-7, 12345.6].map(number);
/// assert_eq!(shown, ["6.397", "0.003210", "1.500e-7", "12346"]);
/// ```
#[must_use]
pub fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        // Adding 0 turns -0 into 0.
        return format!("{}", value + 0.0);
    }
    // The exponent must be that of the rounded number, because 0.99996 is rounded to 1.
    let rounded = format!("{value:.3e}");
    let exponent = rounded.split_once('e').map(|(_, exponent)| exponent.parse());
    match exponent {
        Some(Ok(exponent @ -4..7)) => format!("{value:.*}", (3 - exponent).max(0) as usize),
        _ => rounded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits_at_any_magnitude() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1.000"),
            (0.99996, "1.000"),
            (-12.3456, "-12.35"),
            (9_999_000.0, "9999000"),
            (1e7, "1.000e7"),
            (0.0001, "0.0001000"),
            (0.00001, "1.000e-5"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
            (5e-324, "4.941e-324"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn columns_align_whatever_is_missing() {
        let table = Table::new(["é", "n"])
            .row(["long name".into(), 5usize.into(), "beyond".into()])
            .row(["b".into()])
            .row([Cell::Missing, Cell::Number("-17".to_owned())])
            .row(["c".into(), "1 to 2".into()]);
        let text = table.to_string();
        let expected = "é               n\n---------  ------  ------\nlong name       5  \
            beyond\nb\n-             \
            -17\nc          1 to 2\n";
        assert_eq!(text, expected);
        assert_eq!(Table::new([""; 0]).to_string(), "\n\n");
    }
}
