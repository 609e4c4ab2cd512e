//! Tables of molecules: the column of SMILES, and the SMILES field in each record.

/// The characters that may separate the fields of a table, in the order in which they are tried.
const SEPARATORS: [char; 5] = ['\t', ';', ',', '|', ' '];

/// The layout of a file: it determines how lines are divided into fields, and which field has the SMILES.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    /// The separator of fields. `None` means that each line begins with a SMILES, which ends at any
    /// separator. The remainder of the line is then ignored.
    separator: Option<char>,
    /// The index of the field that has the SMILES.
    column: usize,
}

impl Table {
    /// The layout of files without a header, in which each line begins with a SMILES.
    pub(super) const LINES: Self = Self { separator: None, column: 0 };

    /// Finds the separator and the SMILES column of a header line. If a name is given, the column must have
    /// exactly this name. Otherwise, it is the column `smiles` or, if there is none, the first column whose
    /// name ends in `smiles` (`canonical_smiles`), in upper or lower case. Returns `None` if the line has
    /// no such column.
    pub(super) fn from_header(line: &str, name: Option<&str>) -> Option<Self> {
        SEPARATORS.iter().find_map(|&separator| {
            let mut record = TableRecord::new(Self { separator: Some(separator), column: 0 });
            record.take(line);
            let names: Vec<String> =
                record.fields.iter().map(|field| field.trim().to_ascii_lowercase()).collect();
            let column = match name {
                Some(name) => record.fields.iter().position(|field| field.trim() == name),
                None if names.len() == 1 && names[0].contains(SEPARATORS) => None,
                None => names
                    .iter()
                    .position(|field| field == "smiles")
                    .or_else(|| names.iter().position(|field| field.ends_with("smiles"))),
            };
            // A header with a single column doesn't show which separator the file uses. With `None`, a SMILES
            // ends at any separator.
            Some(Self { separator: (names.len() > 1).then_some(separator), column: column? })
        })
    }
}

/// A record of a table. Quoted fields may contain line breaks.
pub(super) struct TableRecord {
    table: Table,
    /// The fields that have been read. The list has at least one field.
    fields: Vec<String>,
    /// `true` while the quote of a field is still open.
    is_open: bool,
}

impl TableRecord {
    pub(super) fn new(table: Table) -> Self {
        Self { table, fields: vec![String::new()], is_open: false }
    }

    /// Reads a line of the record. Returns `false` if a quote is still open at the end of the line. The
    /// record then continues on the next line.
    pub(super) fn take(&mut self, line: &str) -> bool {
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            let last = self.fields.len() - 1;
            let field = &mut self.fields[last];
            let separates = self.table.separator.map_or(SEPARATORS.contains(&c), |separator| c == separator);
            match c {
                // Two consecutive quotes inside a quoted field mean one quote.
                '"' if self.is_open && chars.next_if_eq(&'"').is_none() => self.is_open = false,
                '"' if !self.is_open && field.trim().is_empty() => self.is_open = true,
                _ if self.is_open || !separates => field.push(c),
                ' ' | '\t' if field.is_empty() && self.table.separator != Some('\t') => {}
                _ if self.table.separator.is_none() => return true,
                _ => self.fields.push(String::new()),
            }
        }
        if self.is_open && self.table.separator == Some('\t') {
            // Many programs write tab-separated text without quoting. An unmatched quote is therefore part of
            // the text.
            let unquoted = |field: &str| field.strip_prefix('"')?.strip_suffix('"').map(str::to_owned);
            self.fields =
                line.split('\t').map(|field| unquoted(field).unwrap_or_else(|| field.to_owned())).collect();
            self.is_open = false;
        }
        !self.is_open
    }

    /// Returns the SMILES of the record. Text after a blank (CXSMILES) isn't included. The result is empty
    /// if the record has too few fields.
    pub(super) fn smiles(&self) -> &str {
        let field = self.fields.get(self.table.column).map_or("", String::as_str);
        field.split_whitespace().next().unwrap_or_default()
    }
}
