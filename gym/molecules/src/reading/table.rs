//! Tables of molecules: the column of SMILES, and the field in each record.

/// The separators of tables, in the order in which they are tried.
const SEPARATORS: [char; 5] = ['\t', ';', ',', '|', ' '];

/// The division of a file's lines into fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    /// The separator; `None` for lines that begin with a SMILES: any separator ends it, and the rest of the
    /// line is ignored.
    separator: Option<char>,
    /// The place of the SMILES among the fields.
    column: usize,
}

impl Table {
    /// The layout of lines that begin with a SMILES.
    pub(super) const LINES: Self = Self { separator: None, column: 0 };

    /// Finds the separator and the SMILES column of a header: the column with the given name or, without a
    /// name, `smiles`, else the first column whose name ends in `smiles` (`canonical_smiles`), in upper or
    /// lower case. `None` if the line has no such column.
    pub(super) fn from_header(line: &str, name: Option<&str>) -> Option<Self> {
        SEPARATORS.iter().find_map(|&separator| {
            let mut record = TableRecord::new(Self { separator: Some(separator), column: 0 });
            record.take(line);
            let names: Vec<String> = record.fields.iter().map(|field| field.trim().to_ascii_lowercase()).collect();
            let column = match name {
                Some(name) => record.fields.iter().position(|field| field.trim() == name),
                None if names.len() == 1 && names[0].contains(SEPARATORS) => None,
                None => names
                    .iter()
                    .position(|field| field == "smiles")
                    .or_else(|| names.iter().position(|field| field.ends_with("smiles"))),
            };
            // The separator is unknown if there is only one column.
            Some(Self { separator: (names.len() > 1).then_some(separator), column: column? })
        })
    }
}

/// A record of a table. Quoted fields may contain line breaks.
pub(super) struct TableRecord {
    table: Table,
    /// The fields so far, at least one.
    fields: Vec<String>,
    /// `true` inside a quoted field.
    is_open: bool,
}

impl TableRecord {
    pub(super) fn new(table: Table) -> Self {
        Self { table, fields: vec![String::new()], is_open: false }
    }

    /// Takes a line; returns `false` if a quote is open, so that the record continues on the next line.
    pub(super) fn take(&mut self, line: &str) -> bool {
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            let last = self.fields.len() - 1;
            let field = &mut self.fields[last];
            let separates = self.table.separator.map_or(SEPARATORS.contains(&c), |separator| c == separator);
            match c {
                // Two quotes inside a quoted field stand for a quote.
                '"' if self.is_open && chars.next_if_eq(&'"').is_none() => self.is_open = false,
                '"' if !self.is_open && field.trim().is_empty() => self.is_open = true,
                _ if self.is_open || !separates => field.push(c),
                ' ' | '\t' if field.is_empty() && self.table.separator != Some('\t') => {}
                _ if self.table.separator.is_none() => return true,
                _ => self.fields.push(String::new()),
            }
        }
        if self.is_open && self.table.separator == Some('\t') {
            // Many programs write tab-separated text without quoting, so an unmatched quote is part of the
            // text.
            let unquoted = |field: &str| field.strip_prefix('"')?.strip_suffix('"').map(str::to_owned);
            self.fields = line.split('\t').map(|field| unquoted(field).unwrap_or_else(|| field.to_owned())).collect();
            self.is_open = false;
        }
        !self.is_open
    }

    /// Returns the SMILES without anything behind a blank (CXSMILES); empty if the record has too few fields.
    pub(super) fn smiles(&self) -> &str {
        let field = self.fields.get(self.table.column).map_or("", String::as_str);
        field.split_whitespace().next().unwrap_or_default()
    }
}
