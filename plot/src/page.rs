//! Pages of a report: texts, tables and pictures in one HTML file.

use std::path::Path;

use gfn::{Error, Result};

use crate::Table;

/// A report as one HTML file. Pictures are part of the file, so it can be sent to others as it is.
///
/// ```
/// use gfn_plot::{Canvas, Page, Table};
/// let page = Page::new("Edges & graphs")
///     .heading("Probabilities")
///     .text("The probability of each edge.")
///     .table(&Table::new(["edge", "p"]).row(["a -> b".into(), 0.5.into()]))
///     .picture(&Canvas::new(10.0, 10.0).to_svg()?);
/// let html = page.to_html();
/// assert!(html.contains("<h1>Edges &amp; graphs</h1>") && html.contains("<td>a -&gt; b</td>"));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Page {
    title: String,
    body: String,
}

impl Page {
    /// Creates a page that has only a title.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), body: String::new() }
    }

    /// Adds a heading.
    #[must_use]
    pub fn heading(self, text: &str) -> Self {
        let text = escape(text);
        self.with(&format!("<h2>{text}</h2>"))
    }

    /// Adds a paragraph of plain text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        let text = escape(text);
        self.with(&format!("<p>{text}</p>"))
    }

    /// Adds a table.
    #[must_use]
    pub fn table(self, table: &Table) -> Self {
        let mut lines = String::new();
        for (k, line) in table.texts().into_iter().enumerate() {
            let tag = if k == 0 { "th" } else { "td" };
            let cells: Vec<String> =
                line.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
            lines.push_str(&format!("<tr>{}</tr>\n", cells.concat()));
        }
        self.with(&format!("<table>\n{lines}</table>"))
    }

    /// Adds a picture: the text of an SVG file, which must not be text of unknown origin.
    #[must_use]
    pub fn picture(self, svg: &str) -> Self {
        // An HTML file can contain the element `svg`, but no XML declaration.
        let start = svg.find("<svg").unwrap_or(0);
        self.with(&svg[start..])
    }

    fn with(mut self, html: &str) -> Self {
        self.body.push_str(html);
        self.body.push('\n');
        self
    }

    /// Returns the page as the text of an HTML file.
    #[must_use]
    pub fn to_html(&self) -> String {
        let title = escape(&self.title);
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
             <style>\nbody {{ font-family: sans-serif; max-width: 64em; margin: 2em auto; }}\n\
             td, th {{ padding: 0.1em 1em 0.1em 0; text-align: left; }}\n\
             svg {{ max-width: 100%; height: auto; }}\n\
             </style>\n</head>\n<body>\n<h1>{title}</h1>\n{}</body>\n</html>\n",
            self.body
        )
    }

    /// Writes the page to an HTML file.
    ///
    /// # Errors
    /// [`Error::Io`] if the file can't be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        std::fs::write(path, self.to_html()).map_err(|source| Error::io(path, source))
    }
}

/// Replaces the characters that have a meaning in HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
