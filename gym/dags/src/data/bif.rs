//! A reader of BIF 0.15, the Interchange Format for Bayesian networks, which the Bayesian network
//! repository uses.

use std::path::Path;

use gfn::{Error, Result};

use super::DiscreteNetwork;
use super::network::MAX_ENTRIES;
use crate::{MAX_NODES, acyclic};

const EXPECTED: &str = "a BIF network: `variable X { type discrete [ 2 ] { a, b }; }` for each variable, and \
                        `probability ( X | Y ) { (a) 0.1, 0.9; ... }` or `{ table 0.1, 0.9; }`";

/// Splits a text into words and punctuation marks, each with its line number. Comments and quotation marks
/// are removed.
fn tokens(text: &str) -> Vec<(usize, &str)> {
    let mut out = Vec::new();
    let mut in_comment = false;
    for (k, mut rest) in text.lines().enumerate() {
        loop {
            rest = rest.trim_start();
            if in_comment {
                let Some(end) = rest.find("*/") else { break };
                (rest, in_comment) = (&rest[end + 2..], false);
            } else if rest.is_empty() || rest.starts_with("//") {
                break;
            } else if let Some(after) = rest.strip_prefix("/*") {
                (rest, in_comment) = (after, true);
            } else {
                let is_mark = |c: char| "{}[]()|,;".contains(c);
                let end = match rest.strip_prefix('"') {
                    Some(quoted) => quoted.find('"').map_or(rest.len(), |end| end + 2),
                    None if rest.starts_with(is_mark) => 1,
                    None => rest.find(|c: char| is_mark(c) || c.is_whitespace()).unwrap_or(rest.len()),
                };
                out.push((k + 1, rest[..end].trim_matches('"')));
                rest = &rest[end..];
            }
        }
    }
    out
}

/// A reader that consumes the tokens of a BIF text one after another.
struct BifReader<'a> {
    tokens: &'a [(usize, &'a str)],
    line: usize,
}

impl<'a> BifReader<'a> {
    fn error(&self, problem: impl ToString) -> Error {
        Error::parse(self.line, problem, EXPECTED)
    }

    fn next(&mut self) -> Result<&'a str> {
        let Some((&(line, token), rest)) = self.tokens.split_first() else {
            return Err(self.error("the text ends too early"));
        };
        (self.tokens, self.line) = (rest, line);
        Ok(token)
    }

    fn expect(&mut self, mark: &str) -> Result<()> {
        let got = self.next()?;
        if got == mark { Ok(()) } else { Err(self.error(format!("`{got}` was found instead of `{mark}`"))) }
    }

    /// Reads words up to the punctuation mark `close`. Commas between the words are optional.
    fn list(&mut self, close: &str) -> Result<Vec<&'a str>> {
        let mut out = Vec::new();
        loop {
            match self.next()? {
                "," => {}
                word if word == close => return Ok(out),
                word if "{}[]()|;".contains(word) => {
                    return Err(self.error(format!("`{word}` was found instead of `{close}`")));
                }
                word => out.push(word),
            }
        }
    }

    /// Reads the `count` probabilities of a line in the table of the variable `name`, up to the semicolon.
    fn probabilities(&mut self, count: usize, name: &str) -> Result<Vec<f64>> {
        let words = self.list(";")?;
        if words.len() != count {
            return Err(
                self.error(format!("`{name}` has {} probabilities here, but needs {count}", words.len()))
            );
        }
        let number = |word: &&str| match word.parse::<f64>() {
            Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
            _ => Err(self.error(format!("`{word}` isn't a probability"))),
        };
        words.iter().map(number).collect()
    }

    /// Skips a statement that the reader doesn't use. The statement ends at a semicolon or, if it has a block
    /// in braces, at the end of the block.
    fn skip(&mut self) -> Result<()> {
        let mut depth = 0;
        loop {
            match self.next()? {
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    if depth <= 0 {
                        return Ok(());
                    }
                }
                ";" if depth == 0 => return Ok(()),
                _ => {}
            }
        }
    }
}

/// The variables and probability tables of a network that have been read so far.
#[derive(Default)]
struct BifVariables {
    names: Vec<String>,
    labels: Vec<Vec<String>>,
    /// The parents and the probability table of each variable; `None` before the variable's table is read.
    families: Vec<Option<(Vec<usize>, Vec<f64>)>>,
    /// The number of probabilities in all tables that have been read so far.
    entries: usize,
}

impl BifVariables {
    fn find(&self, reader: &BifReader<'_>, name: &str) -> Result<usize> {
        let place = self.names.iter().position(|known| known == name);
        place.ok_or_else(|| reader.error(format!("there is no variable `{name}`")))
    }

    fn read_variable(&mut self, reader: &mut BifReader<'_>) -> Result<()> {
        let name = reader.next()?;
        reader.expect("{")?;
        let mut labels = Vec::new();
        loop {
            match reader.next()? {
                "}" => break,
                "type" => {
                    reader.expect("discrete")?;
                    reader.expect("[")?;
                    let size = reader.list("]")?;
                    reader.expect("{")?;
                    labels = reader.list("}")?;
                    reader.expect(";")?;
                    if size != [labels.len().to_string()] {
                        let count = labels.len();
                        return Err(
                            reader.error(format!("`{name}` announces {size:?} values, but lists {count}"))
                        );
                    }
                }
                _ => reader.skip()?,
            }
        }
        let mut sorted = labels.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(reader.error(format!("`{name}` has the value `{}` twice", pair[0])));
        }
        if self.names.iter().any(|known| known == name) {
            return Err(reader.error(format!("variable `{name}` is declared twice")));
        }
        if labels.len() < 2 {
            return Err(
                reader.error(format!("variable `{name}` has {} values, but needs at least 2", labels.len()))
            );
        }
        self.names.push(name.into());
        self.labels.push(labels.into_iter().map(String::from).collect());
        self.families.push(None);
        Ok(())
    }

    /// Reads the probability table of a variable, whose parents may come in any order. The table is stored
    /// for the parents in ascending order, with the value of the last parent changing fastest.
    fn read_table(&mut self, reader: &mut BifReader<'_>) -> Result<()> {
        reader.expect("(")?;
        let name = reader.next()?;
        let node = self.find(reader, name)?;
        let parents = match reader.next()? {
            ")" => Vec::new(),
            "|" => reader.list(")")?.iter().map(|parent| self.find(reader, parent)).collect::<Result<_>>()?,
            other => return Err(reader.error(format!("`{other}` was found instead of `|` or `)`"))),
        };
        let size = |parent: &usize| self.labels[*parent].len();
        let values = self.labels[node].len();
        let entries = parents.iter().try_fold(values, |entries, parent| entries.checked_mul(size(parent)));
        let Some(entries) = entries.filter(|&entries| entries <= MAX_ENTRIES - self.entries) else {
            let problem =
                format!("the tables up to that of `{name}` have more than 16,777,216 probabilities");
            return Err(reader.error(problem));
        };
        let later = |parent: &usize| parents.iter().filter(|other| *other > parent).map(size).product();
        let strides: Vec<usize> = parents.iter().map(later).collect();
        let mut table = vec![f64::NAN; entries];
        let mut default: Option<Vec<f64>> = None;
        let twice = |reader: &BifReader<'_>, row: &str| {
            Err(reader.error(format!("the table of `{name}` gives {row} twice: keep one of them")))
        };
        reader.expect("{")?;
        loop {
            match reader.next()? {
                "}" => break,
                "table" => {
                    // The probabilities of a `table` statement are sorted by the value of the variable itself
                    // first, then by the values of the parents.
                    let numbers = reader.probabilities(entries, name)?;
                    let rows = entries / values;
                    if table.iter().any(|p| !p.is_nan()) {
                        return twice(reader, "some rows");
                    }
                    for row in 0..rows {
                        let mut rest = row;
                        let mut place = 0;
                        for (parent, stride) in parents.iter().zip(&strides).rev() {
                            place += rest % size(parent) * stride;
                            rest /= size(parent);
                        }
                        for k in 0..values {
                            table[place * values + k] = numbers[k * rows + row];
                        }
                    }
                }
                "default" => {
                    if default.replace(reader.probabilities(values, name)?).is_some() {
                        return twice(reader, "its default");
                    }
                }
                "(" => {
                    let labels = reader.list(")")?;
                    if labels.len() != parents.len() {
                        return Err(reader.error(format!(
                            "the row has {} values, but there are {} parents",
                            labels.len(),
                            parents.len()
                        )));
                    }
                    let mut place = 0;
                    for ((label, &parent), stride) in labels.iter().zip(&parents).zip(&strides) {
                        let Some(value) = self.labels[parent].iter().position(|known| known == label) else {
                            return Err(
                                reader.error(format!("`{}` has no value `{label}`", self.names[parent]))
                            );
                        };
                        place += value * stride;
                    }
                    let row = &mut table[place * values..][..values];
                    if !row[0].is_nan() {
                        return twice(reader, &format!("the row ({})", labels.join(", ")));
                    }
                    row.copy_from_slice(&reader.probabilities(values, name)?);
                }
                "property" => reader.skip()?,
                other => return Err(reader.error(format!("`{other}` was found in the table of `{name}`"))),
            }
        }
        if let Some(default) = default {
            let missing = table.chunks_exact_mut(values).filter(|row| row[0].is_nan());
            for row in missing {
                row.copy_from_slice(&default);
            }
        }
        if table.iter().any(|p| p.is_nan()) {
            return Err(reader.error(format!("the table of `{name}` has rows without probabilities")));
        }
        self.entries += entries;
        match self.families[node].replace((parents, table)) {
            None => Ok(()),
            Some(_) => Err(reader.error(format!("`{name}` has two tables"))),
        }
    }
}

impl DiscreteNetwork {
    /// Reads a network of discrete variables from BIF text. The probabilities of a variable may be given
    /// row by row, in one `table` statement, or with a default row. A leading byte-order mark is skipped.
    ///
    /// ```
    /// use gfn_dags::DiscreteNetwork;
    /// let text = "network weather {}
    ///     variable rain { type discrete [ 2 ] { no, yes }; }
    ///     variable grass { type discrete [ 2 ] { dry, wet }; }
    ///     probability ( rain ) { table 0.8, 0.2; }
    ///     probability ( grass | rain ) { (no) 0.9, 0.1; (yes) 0.01, 0.99; }";
    /// let network = DiscreteNetwork::from_bif(text)?;
    /// assert!(network.dag().has_edge(0, 1));
    /// assert!((network.log_prob(&[1, 1]) - (0.2f64 * 0.99).ln()).abs() < 1e-12);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Parse`] with the line of a syntax error or of a row that is given twice, and for more than
    /// 16 million probabilities in the whole file; [`Error::Config`] for more than 200 variables;
    /// [`Error::Contract`] for a cycle; errors of [`new`](Self::new).
    pub fn from_bif(text: &str) -> Result<Self> {
        let tokens = tokens(text.trim_start_matches('\u{feff}'));
        let is_declared = |words: &&[(usize, &str)]| words[0].1 == "variable" && words[2].1 == "{";
        let n_variables = tokens.windows(3).filter(is_declared).count();
        if n_variables > MAX_NODES {
            return Err(Error::config("the number of variables of the network", n_variables, "at most 200"));
        }
        let mut reader = BifReader { tokens: &tokens, line: 1 };
        let mut variables = BifVariables::default();
        while !reader.tokens.is_empty() {
            match reader.next()? {
                "network" => reader.skip()?,
                "variable" => variables.read_variable(&mut reader)?,
                "probability" => variables.read_table(&mut reader)?,
                other => {
                    return Err(reader.error(format!("`{other}` was found instead of a variable or a table")));
                }
            }
        }
        let mut tables = Vec::new();
        let mut edges = Vec::new();
        for ((node, name), family) in (0..).zip(&variables.names).zip(variables.families) {
            let Some((parents, table)) = family else {
                return Err(reader.error(format!("`{name}` has no table")));
            };
            edges.extend(parents.iter().map(|&parent| (parent as u32, node)));
            tables.push(table);
        }
        let dag = acyclic(variables.names.len(), &edges)?;
        Self::new(variables.names, variables.labels, dag, tables)
    }

    /// Reads a BIF file: see [`from_bif`](Self::from_bif).
    ///
    /// # Errors
    /// [`Error::Io`] if the file can't be read; errors of [`from_bif`](Self::from_bif).
    pub fn read_bif(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
        Self::from_bif(&text)
    }
}
