//! The Interchange Format for Bayesian networks (BIF 0.15): the format of the Bayesian network repository.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use gfn::{Error, Result};

use super::DiscreteNetwork;
use super::network::MAX_ENTRIES;
use crate::DagStates;

const EXPECTED: &str = "a BIF network: `variable X { type discrete [ 2 ] { a, b }; }` for each variable, and \
                        `probability ( X | Y ) { (a) 0.1, 0.9; ... }` or `{ table 0.1, 0.9; }`";

#[derive(Clone, PartialEq, Eq, Debug)]
struct Token {
    line: usize,
    text: String,
}

/// The tokens of a text: words and punctuation marks, without comments.
fn tokens(text: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let mut in_comment = false;
    for (k, line) in text.lines().enumerate() {
        let mut rest = line;
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
                out.push(Token { line: k + 1, text: rest[..end].trim_matches('"').to_owned() });
                rest = &rest[end..];
            }
        }
    }
    out
}

/// Reads tokens one after another.
struct Reader<'a> {
    rest: &'a [Token],
    line: usize,
}

impl Reader<'_> {
    fn error(&self, problem: impl ToString) -> Error {
        Error::parse(self.line, problem, EXPECTED)
    }

    fn peek(&self) -> Option<&str> {
        self.rest.first().map(|token| token.text.as_str())
    }

    fn next(&mut self) -> Result<String> {
        let Some((first, rest)) = self.rest.split_first() else {
            return Err(self.error("the text ends too early"));
        };
        (self.rest, self.line) = (rest, first.line);
        Ok(first.text.clone())
    }

    fn expect(&mut self, mark: &str) -> Result<()> {
        let got = self.next()?;
        if got == mark { Ok(()) } else { Err(self.error(format!("`{got}` where `{mark}` belongs"))) }
    }

    /// Words with commas between them, or without, up to a closing mark.
    fn list(&mut self, close: &str) -> Result<Vec<String>> {
        let mut out = Vec::new();
        loop {
            match self.next()?.as_str() {
                "," => {}
                word if word == close => return Ok(out),
                word if "{}[]()|;".contains(word) => {
                    return Err(self.error(format!("`{word}` where `{close}` belongs")));
                }
                word => out.push(word.to_owned()),
            }
        }
    }

    fn numbers(&mut self) -> Result<Vec<f64>> {
        let words = self.list(";")?;
        let number = |word: &String| match word.parse::<f64>() {
            Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
            _ => Err(self.error(format!("`{word}` isn't a probability"))),
        };
        words.iter().map(number).collect()
    }

    /// Skips a statement that isn't needed: up to its semicolon, or past its block.
    fn skip(&mut self) -> Result<()> {
        let mut depth = 0;
        loop {
            match self.next()?.as_str() {
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

    fn variable(&mut self) -> Result<(String, Vec<String>)> {
        let name = self.next()?;
        self.expect("{")?;
        let mut labels = Vec::new();
        loop {
            match self.next()?.as_str() {
                "}" => break,
                "type" => {
                    self.expect("discrete")?;
                    self.expect("[")?;
                    let size = self.list("]")?;
                    self.expect("{")?;
                    labels = self.list("}")?;
                    self.expect(";")?;
                    if size != [labels.len().to_string()] {
                        return Err(self.error(format!("`{name}` announces {size:?} values and has {}", labels.len())));
                    }
                }
                _ => self.skip()?,
            }
        }
        if labels.len() < 2 {
            return Err(self.error(format!("`{name}` has {} values: a variable has at least 2", labels.len())));
        }
        let mut seen = HashSet::with_capacity(labels.len());
        if let Some(label) = labels.iter().find(|label| !seen.insert(label.as_str())) {
            return Err(self.error(format!("`{name}` has the value `{label}` twice")));
        }
        Ok((name, labels))
    }
}

/// The variables read so far.
#[derive(Default)]
struct Variables {
    names: Vec<String>,
    labels: Vec<Vec<String>>,
    index: HashMap<String, usize>,
    /// The number of each label, by variable.
    values: Vec<HashMap<String, usize>>,
    /// Entries of all tables so far.
    entries: usize,
}

/// A node's parents as the file orders them, and its table in that order.
struct Family {
    parents: Vec<usize>,
    table: Vec<f64>,
}

impl Variables {
    fn find(&self, reader: &Reader<'_>, name: &str) -> Result<usize> {
        self.index.get(name).copied().ok_or_else(|| reader.error(format!("there is no variable `{name}`")))
    }

    fn add(&mut self, reader: &Reader<'_>, name: String, labels: Vec<String>) -> Result<()> {
        if self.index.insert(name.clone(), self.names.len()).is_some() {
            return Err(reader.error(format!("variable `{name}` comes twice")));
        }
        self.values.push(labels.iter().cloned().enumerate().map(|(value, label)| (label, value)).collect());
        self.names.push(name);
        self.labels.push(labels);
        Ok(())
    }

    fn family(&mut self, reader: &mut Reader<'_>) -> Result<(usize, Family)> {
        reader.expect("(")?;
        let name = reader.next()?;
        let node = self.find(reader, &name)?;
        let parents = match reader.next()?.as_str() {
            ")" => Vec::new(),
            "|" => reader.list(")")?.iter().map(|parent| self.find(reader, parent)).collect::<Result<_>>()?,
            other => return Err(reader.error(format!("`{other}` where `|` or `)` belongs"))),
        };
        let values = self.labels[node].len();
        let sizes = parents.iter().map(|&parent| self.labels[parent].len());
        let entries = sizes.clone().try_fold(values, |entries, size| entries.checked_mul(size));
        let left = MAX_ENTRIES - self.entries;
        let Some(entries) = entries.filter(|&entries| entries <= left) else {
            return Err(
                reader.error(format!("with the table of `{name}` there are more than 16,777,216 probabilities"))
            );
        };
        self.entries += entries;
        let mut table = vec![f64::NAN; entries];
        reader.expect("{")?;
        loop {
            match reader.next()?.as_str() {
                "}" => break,
                "table" => {
                    let numbers = reader.numbers()?;
                    if numbers.len() != entries {
                        return Err(reader.error(format!("{} numbers for the {entries} of `{name}`", numbers.len())));
                    }
                    // In a table of all rows the node's own value changes slowest.
                    let rows = entries / values;
                    (0..entries).for_each(|k| table[k] = numbers[k % values * rows + k / values]);
                }
                "default" => {
                    let row = self.row(reader, node)?;
                    table
                        .chunks_exact_mut(values)
                        .filter(|old| old[0].is_nan())
                        .for_each(|old| old.copy_from_slice(&row));
                }
                "(" => {
                    let labels = reader.list(")")?;
                    if labels.len() != parents.len() {
                        return Err(reader.error(format!("{} values for {} parents", labels.len(), parents.len())));
                    }
                    let mut code = 0;
                    for (label, &parent) in labels.iter().zip(&parents) {
                        let Some(value) = self.values[parent].get(label) else {
                            return Err(reader.error(format!("`{}` has no value `{label}`", self.names[parent])));
                        };
                        code = code * self.labels[parent].len() + value;
                    }
                    let row = self.row(reader, node)?;
                    table[code * values..(code + 1) * values].copy_from_slice(&row);
                }
                "property" => reader.skip()?,
                other => return Err(reader.error(format!("`{other}` in the table of `{name}`"))),
            }
        }
        match table.iter().any(|p| p.is_nan()) {
            true => Err(reader.error(format!("the table of `{name}` has rows without probabilities"))),
            false => Ok((node, Family { parents, table })),
        }
    }

    fn row(&self, reader: &mut Reader<'_>, node: usize) -> Result<Vec<f64>> {
        let row = reader.numbers()?;
        let values = self.labels[node].len();
        if row.len() == values {
            return Ok(row);
        }
        Err(reader.error(format!("{} probabilities for the {values} values of `{}`", row.len(), self.names[node])))
    }

    /// A table with the parents in ascending order.
    fn ascending(&self, node: usize, family: &Family) -> Vec<f64> {
        let values = self.labels[node].len();
        let mut order: Vec<usize> = (0..family.parents.len()).collect();
        order.sort_by_key(|&k| family.parents[k]);
        let sizes: Vec<usize> = family.parents.iter().map(|&parent| self.labels[parent].len()).collect();
        let mut out = vec![0.0; family.table.len()];
        for (code, row) in family.table.chunks_exact(values).enumerate() {
            let mut rest = code;
            let mut digits = vec![0; sizes.len()];
            for (digit, size) in digits.iter_mut().zip(&sizes).rev() {
                (*digit, rest) = (rest % size, rest / size);
            }
            let place = order.iter().fold(0, |place, &k| place * sizes[k] + digits[k]);
            out[place * values..(place + 1) * values].copy_from_slice(row);
        }
        out
    }
}

impl DiscreteNetwork {
    /// Reads a network from BIF text: discrete variables, tables by row, as a whole, or with a default.
    ///
    /// ```
    /// use gfn_dags::DiscreteNetwork;
    /// let text = "network weather {}
    ///     variable rain { type discrete [ 2 ] { no, yes }; }
    ///     variable grass { type discrete [ 2 ] { dry, wet }; }
    ///     probability ( rain ) { table 0.8, 0.2; }
    ///     probability ( grass | rain ) { (no) 0.9, 0.1; (yes) 0.01, 0.99; }";
    /// let network = DiscreteNetwork::from_bif(text)?;
    /// assert!(network.dag().dag(0).has_edge(0, 1));
    /// assert!((network.log_prob(&[1, 1]) - (0.2f64 * 0.99).ln()).abs() < 1e-12);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Parse`] with the line of what isn't in the format, and for more than 16 million probabilities in all;
    /// [`Error::Contract`] for a cycle; those of [`new`](Self::new).
    pub fn from_bif(text: &str) -> Result<Self> {
        let tokens = tokens(text);
        let mut reader = Reader { rest: &tokens, line: 1 };
        let mut variables = Variables::default();
        let mut families: HashMap<usize, Family> = HashMap::new();
        while reader.peek().is_some() {
            match reader.next()?.as_str() {
                "network" => reader.skip()?,
                "variable" => {
                    let (name, labels) = reader.variable()?;
                    variables.add(&reader, name, labels)?;
                }
                "probability" => {
                    let (node, family) = variables.family(&mut reader)?;
                    if families.insert(node, family).is_some() {
                        return Err(reader.error(format!("`{}` has two tables", variables.names[node])));
                    }
                }
                other => return Err(reader.error(format!("`{other}` where a variable or a table belongs"))),
            }
        }
        let mut tables = Vec::with_capacity(variables.names.len());
        let mut edges = Vec::new();
        for (node, name) in variables.names.iter().enumerate() {
            let Some(family) = families.remove(&node) else {
                return Err(reader.error(format!("`{name}` has no table")));
            };
            tables.push(variables.ascending(node, &family));
            edges.extend(family.parents.iter().map(|&parent| (parent as u32, node as u32)));
        }
        let dag = DagStates::from_edges(variables.names.len(), [edges.as_slice()])?;
        Self::new(variables.names, variables.labels, dag, tables)
    }

    /// Reads a BIF file: see [`from_bif`](Self::from_bif).
    ///
    /// # Errors
    /// [`Error::Io`] if it can't be read; those of [`from_bif`](Self::from_bif).
    pub fn read_bif(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
        Self::from_bif(&text)
    }
}
